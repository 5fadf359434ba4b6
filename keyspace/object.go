package keyspace

import (
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/shared"
)

// object is a collection as the keyspace needs it; see package collection.
type object interface {
	Load(flat []byte)
	Len() int
	Flat() (flat []byte, ok bool)
	AppendFlat(dst []byte) []byte
	Cost() int64
	Copied() int
	Delta() []byte
	ResetDelta()
	Apply(delta []byte) error
	SetLedger(l shared.Ledger)
	Drop()
}

// collections is how many kinds of collection there are; see [entry.Kind.Ordinal].
const collections = 4

// newObject makes an empty collection of that kind.
func newObject(k entry.Kind) object {
	switch k {
	case entry.Hash:
		return new(collection.Hash)
	case entry.SortedSet:
		return new(collection.SortedSet)
	case entry.List:
		return new(collection.List)
	case entry.Set:
		return new(collection.Set)
	}
	panic("keyspace: not a collection")
}

// bound makes n the most elements of o; if it is tight, no value may become longer
// either.
func bound(o object, n int, tight bool) {
	switch o := o.(type) {
	case *collection.Hash:
		o.Max, o.Tight = n, tight
	case *collection.SortedSet:
		o.Max = n
	case *collection.List:
		o.Max, o.Tight = n, tight
	case *collection.Set:
		o.Max = n
	}
}

package object

import (
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/shared"
)

// Object is a collection. The types of package collection have these methods, and describe them.
type Object interface {
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

// Kinds is the number of kinds of collections. [entry.Kind.Ordinal] numbers them from 0.
const Kinds = 4

// New returns an empty collection of kind k. It panics if k is not the kind of a collection.
func New(k entry.Kind) Object {
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

// Bound sets the maximum number of elements of o to n. If tight is true, the values of a hash and
// the elements of a list must not become longer either.
func Bound(o Object, n int, tight bool) {
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

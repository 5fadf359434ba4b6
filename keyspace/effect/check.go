package effect

import (
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Check returns an error if e cannot be an effect of a command. It checks only e itself, not the
// key that e changes. e may come from a file or from another server.
func Check(e Effect) error {
	switch {
	case e.Flush, !e.Patch && e.Entry.Kind == entry.None:
		return nil
	case !e.Patch:
		return CheckEntry(e.Entry)
	case !Patchable(e.Entry.Kind):
		return errEffect
	case e.Entry.Kind.IsCollection():
		return object.New(e.Entry.Kind).Apply(e.Entry.Value)
	case len(e.Entry.Value) == 0:
		return nil // only the expiry
	case e.Entry.Kind.IsWindow():
		return slidingwindow.CheckDelta(e.Entry.Kind.WindowMode(), e.Entry.Value)
	}
	return concurrency.CheckDelta(e.Entry.Kind.LeaseMode(), e.Entry.Value)
}

// CheckEntry returns an error if e cannot be the entry of a key. e may come from a file or from
// another server.
func CheckEntry(e entry.Entry) error {
	switch {
	case e.Kind == entry.String:
		return nil
	case e.Kind.IsCollection():
		return checkFlat(e.Kind, e.Value)
	case e.Kind == entry.Cell:
		if len(e.Value) == 0 {
			return nil
		}
		return gcra.Check(e.Value)
	case e.Kind.IsWindow():
		return slidingwindow.Check(e.Kind.WindowMode(), e.Value)
	case e.Kind.IsBucket():
		return tokenbucket.Check(e.Kind.BucketMode(), e.Value)
	case e.Kind.IsLease():
		return concurrency.Check(e.Kind.LeaseMode(), e.Value)
	}
	return errEffect
}

// checkFlat returns an error if flat is not a valid value for a collection of kind k.
func checkFlat(k entry.Kind, flat []byte) error {
	if len(flat) == 0 {
		return errEffect // an empty collection is never stored
	}
	switch k {
	case entry.Hash:
		return collection.CheckHash(flat)
	case entry.SortedSet:
		return collection.CheckSortedSet(flat)
	case entry.List:
		return collection.CheckList(flat)
	}
	return collection.CheckSet(flat)
}

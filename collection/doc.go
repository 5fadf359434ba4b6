// Package collection implements the four values that have elements: [Hash], [SortedSet], [List] and
// [Set]. Scripts and programs that implement limits with the plain types of Redis use such values:
// a token bucket in a hash, or a log of requests in a sorted set.
//
// A collection has no key, no expiry, no clock and no lock: only one goroutine at a time may use
// it. The zero value is an empty collection.
//
// # Two representations
//
// A small collection (up to 64 elements and 1 KiB, see [Hash.Flat]) is one slice of bytes, which is
// searched and edited in place. So most keys need no objects in Go's heap. A larger collection is a
// tree or a map. It becomes flat again when it has shrunk to half of these bounds, so that a
// collection at the bound does not change its representation with every command.
//
// The flat bytes of a collection of any size (AppendFlat) are stored in snapshots. The elements are
// in the order of iteration:
//
//	hash        count, then for each field: length, field, length, value
//	set         as a hash whose values are empty
//	sorted set  count, then for each element: score, length, member
//	list        position of the first element, count, then for each: length+1, value
//
// Counts and lengths are unsigned varints. Scores (IEEE 754) and positions (two's complement) have
// eight bytes, little endian. An empty collection has no bytes at all.
//
// # Deltas
//
// Every change adds its effect to the delta: the new value of an element, or its removal. A delta
// is absolute: if a sequence of deltas is replayed over a state that already includes some of them,
// the result is the state after the last one. This holds for the order of a hash or a set too,
// since a delta distinguishes a new field, which goes to the end, from a known field, which keeps
// its place. A list numbers its elements with positions that do not change when elements are added
// or removed at its ends; while old deltas are replayed over a newer list, it may have holes.
package collection

import "errors"

// ErrFull is the error for an element that was not added because the collection has as many
// elements as its field Max allows, or for a value that its field Tight forbids. Nothing was
// changed.
var ErrFull = errors.New("the collection is full")

// ErrCorrupt is the error for bytes that should be a flat collection or a delta of a given kind and
// are not.
var ErrCorrupt = errors.New("not the bytes of a collection")

const (
	// flatElements and flatBytes are the maximum numbers of elements and bytes of a flat
	// collection. A search reads at most 16 cache lines of 64 bytes, and costs about as much as in a
	// map.
	flatElements = 64
	flatBytes    = 1024
	// A tree or map becomes flat again when it has shrunk to backElements elements and backBytes
	// bytes.
	backElements = flatElements / 2
	backBytes    = flatBytes / 2
)

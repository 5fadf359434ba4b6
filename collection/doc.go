// Package collection implements the four values that have elements: [Hash], [SortedSet], [List] and
// [Set]. Scripts and programs that implement limits with the plain types of Redis use them: a token
// bucket in a hash, a log of requests in a sorted set.
//
// A collection is a value. It knows no key, no expiry, no clock and no lock: only one goroutine at
// a time may use it. The zero value is an empty collection.
//
// # Two representations
//
// A small collection (up to 64 elements and 1 KiB, see [Hash.Flat]) is one slice
// of bytes, searched and edited in place. So most keys need no object of the
// garbage collector. A larger one is a tree or a map; it becomes flat again when
// it has shrunk to half of that, so that a collection at the edge does not change
// with every command.
//
// The flat bytes of a collection of any size (AppendFlat) are stored in snapshots. Their elements
// have the order of iteration:
//
//	hash        count, then for each field: length, field, length, value
//	set         as a hash whose values are empty
//	sorted set  count, then for each element: score, length, member
//	list        position of the first element, count, then for each: length+1, value
//
// Counts and lengths are unsigned varints, scores IEEE 754 and positions two's
// complement, eight bytes, little endian. An empty collection is no bytes at all.
//
// # Deltas
//
// Every change adds its effect to the delta: the new value of an element, or its removal. A delta
// is absolute: replaying a sequence of deltas over a state that already includes some of them gives
// the state after the last one. That holds for the order of a hash or a set too, since a delta
// distinguishes a new field, which goes to the end, from a known one, which keeps its place. A list
// numbers its elements with positions that do not change when elements are added or removed at its
// ends; while old deltas are replayed over a newer list, it may have holes.
package collection

import "errors"

// ErrFull says that an element was not added because the collection has as many as its Max allows.
// Nothing was changed.
var ErrFull = errors.New("the collection is full")

// ErrCorrupt says that bytes are not a flat collection or not a delta.
var ErrCorrupt = errors.New("not the bytes of a collection")

const (
	// flatElements and flatBytes are the maximum of a flat collection: with 64 elements a search
	// touches 16 cache lines, and costs about as much as in a map.
	flatElements = 64
	flatBytes    = 1024
	// A tree becomes flat again when it has shrunk to these.
	backElements = flatElements / 2
	backBytes    = flatBytes / 2
)

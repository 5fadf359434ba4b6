// Package collection holds the four values that have elements: [Hash],
// [SortedSet], [List] and [Set]. They are what scripts and programs that limit
// with the plain types of Redis keep: a token bucket in a hash, a log of
// requests in a sorted set.
//
// A collection is a value. It knows no key, no expiry, no clock and no lock;
// whoever has it makes sure that nobody else uses it meanwhile. The zero value
// is an empty one.
//
// # Two representations
//
// A small collection (up to 64 elements and 1 KiB, see [Hash.Flat]) is one slice
// of bytes, searched and edited in place. So most keys need no object of the
// garbage collector. A larger one is a tree or a map; it becomes flat again when
// it has shrunk to half of that, so that a collection at the edge does not change
// with every command.
//
// The flat bytes of a collection of any size (AppendFlat) are what a snapshot
// holds. Elements in them have the order in which they are iterated:
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
// Every change leaves its effect in the delta: what an element is now, or that it
// is gone. A delta is absolute, so that replaying a row of them over a state that
// some of them are already in ends in the state after the last one. That holds
// for the order of a hash or a set too: a delta tells a new field, which goes to
// the end, from a known one, which stays where it is. A list numbers its elements
// with positions that do not move when others come or go at its ends; while old
// deltas are replayed over a newer list there may be holes in it.
package collection

import "errors"

// ErrFull says that an element was not added, because the collection has as many
// as its Max admits. Nothing was changed.
var ErrFull = errors.New("the collection is full")

// ErrCorrupt says that bytes are no flat collection or no delta.
var ErrCorrupt = errors.New("not the bytes of a collection")

const (
	// flatElements and flatBytes are the most that a flat collection has: with 64
	// elements a search touches 16 cache lines, and costs about as much as a map's.
	flatElements = 64
	flatBytes    = 1024
	// A tree becomes flat again when it has shrunk to these.
	backElements = flatElements / 2
	backBytes    = flatBytes / 2
)

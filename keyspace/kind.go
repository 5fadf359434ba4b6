package keyspace

import (
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Kind says what a key holds. Its values go to disk and never change meaning. A
// limiter's kind includes its mode, since the same bytes mean different things
// under different modes.
type Kind uint8

// The kinds that have no modes. 3 to 6 are collections, whose value is the flat bytes
// of package collection.
const (
	None   Kind = 0 // no such key
	String Kind = 1 // bytes
	Cell   Kind = 2 // CL.THROTTLE's TAT; a string to everything else

	Hash      Kind = 3
	SortedSet Kind = 4
	List      Kind = 5
	Set       Kind = 6
)

// treeBit is in the kind of a collection that is too large for a value: the table
// has its number in the place of that. It is never seen outside of this package, nor
// in a file.
const treeBit Kind = 64

// Where the modes of the limiter families begin; the mode is added.
const (
	windowKinds Kind = 16
	bucketKinds Kind = 32
	leaseKinds  Kind = 48
	kindsEnd    Kind = 64
)

// Type is what TYPE replies: "none", "string", a collection's name, or "ratelimit".
func (k Kind) Type() string {
	switch k {
	case None:
		return "none"
	case String, Cell:
		return "string"
	case Hash:
		return "hash"
	case SortedSet:
		return "zset"
	case List:
		return "list"
	case Set:
		return "set"
	}
	return "ratelimit"
}

func (k Kind) isTree() bool       { return k&treeBit != 0 }
func (k Kind) base() Kind         { return k &^ treeBit }
func (k Kind) isCollection() bool { return k.base() >= Hash && k.base() <= Set }

// ordinal numbers the kinds of collection from 0.
func (k Kind) ordinal() int { return int(k.base() - Hash) }

func (k Kind) isWindow() bool { return k >= windowKinds && k < bucketKinds }
func (k Kind) isBucket() bool { return k >= bucketKinds && k < leaseKinds }
func (k Kind) isLease() bool  { return k >= leaseKinds && k < kindsEnd }

// Encoding is what OBJECT ENCODING replies for a limiter: "embstr" for a cell, the
// mode for the others. A string's depends on its value; see [View.Encoding].
func (k Kind) Encoding() string {
	switch {
	case k == String || k == Cell:
		return "embstr"
	case k.isWindow():
		return windowMode(k).String()
	case k.isBucket():
		return bucketMode(k).String()
	case k.isLease():
		return leaseMode(k).String()
	}
	return k.Type()
}

// windowMode is the mode of a window's kind, and slidingwindow.None of None.
func windowMode(k Kind) slidingwindow.Mode {
	if k == None {
		return slidingwindow.None
	}
	return slidingwindow.Mode(k - windowKinds)
}

// bucketMode is the mode of a bucket's kind, and tokenbucket.None of None.
func bucketMode(k Kind) tokenbucket.Mode {
	if k == None {
		return tokenbucket.None
	}
	return tokenbucket.Mode(k - bucketKinds)
}

// leaseMode is the mode of a lease set's kind, and concurrency.None of None.
func leaseMode(k Kind) concurrency.Mode {
	if k == None {
		return concurrency.None
	}
	return concurrency.Mode(k - leaseKinds)
}

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

func (k Kind) isCollection() bool { return k >= Hash && k <= Set }

// ordinal numbers the kinds of collection from 0.
func (k Kind) ordinal() int { return int(k - Hash) }

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
		return k.windowMode().String()
	case k.isBucket():
		return k.bucketMode().String()
	case k.isLease():
		return k.leaseMode().String()
	}
	return k.Type()
}

// windowMode is the mode of a window's kind, and slidingwindow.None of None.
func (k Kind) windowMode() slidingwindow.Mode {
	if k == None {
		return slidingwindow.None
	}
	return slidingwindow.Mode(k - windowKinds)
}

// bucketMode is the mode of a bucket's kind, and tokenbucket.None of None.
func (k Kind) bucketMode() tokenbucket.Mode {
	if k == None {
		return tokenbucket.None
	}
	return tokenbucket.Mode(k - bucketKinds)
}

// leaseMode is the mode of a lease set's kind, and concurrency.None of None.
func (k Kind) leaseMode() concurrency.Mode {
	if k == None {
		return concurrency.None
	}
	return concurrency.Mode(k - leaseKinds)
}

// ofWindow, ofBucket and ofLease are the kinds of limiters of a mode.
func ofWindow(m slidingwindow.Mode) Kind { return windowKinds + Kind(m) }

func ofBucket(m tokenbucket.Mode) Kind { return bucketKinds + Kind(m) }

func ofLease(m concurrency.Mode) Kind { return leaseKinds + Kind(m) }

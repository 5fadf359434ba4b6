package entry

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
)

// Kinds is what every kind is less than. The store marks some of its own beyond.
const Kinds Kind = 64

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

// IsCollection reports whether k is a hash, a sorted set, a list or a set.
func (k Kind) IsCollection() bool { return k >= Hash && k <= Set }

// Ordinal numbers the kinds of collection from 0.
func (k Kind) Ordinal() int { return int(k - Hash) }

// IsWindow reports whether k is a limiter of package slidingwindow.
func (k Kind) IsWindow() bool { return k >= windowKinds && k < bucketKinds }

// IsBucket reports whether k is a limiter of package tokenbucket.
func (k Kind) IsBucket() bool { return k >= bucketKinds && k < leaseKinds }

// IsLease reports whether k is a limiter of package concurrency.
func (k Kind) IsLease() bool { return k >= leaseKinds && k < Kinds }

// WindowMode is the mode of a window's kind, and slidingwindow.None of None.
func (k Kind) WindowMode() slidingwindow.Mode {
	if k == None {
		return slidingwindow.None
	}
	return slidingwindow.Mode(k - windowKinds)
}

// BucketMode is the mode of a bucket's kind, and tokenbucket.None of None.
func (k Kind) BucketMode() tokenbucket.Mode {
	if k == None {
		return tokenbucket.None
	}
	return tokenbucket.Mode(k - bucketKinds)
}

// LeaseMode is the mode of a lease set's kind, and concurrency.None of None.
func (k Kind) LeaseMode() concurrency.Mode {
	if k == None {
		return concurrency.None
	}
	return concurrency.Mode(k - leaseKinds)
}

// OfWindow is the kind of a window of a mode.
func OfWindow(m slidingwindow.Mode) Kind { return windowKinds + Kind(m) }

// OfBucket is the kind of a bucket of a mode.
func OfBucket(m tokenbucket.Mode) Kind { return bucketKinds + Kind(m) }

// OfLease is the kind of a set of leases of a mode.
func OfLease(m concurrency.Mode) Kind { return leaseKinds + Kind(m) }

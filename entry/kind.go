package entry

import (
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Kind is the kind of a value. The numbers are stored on disk and never change their meaning. The
// kind of a limiter includes its mode, since the same bytes have different meanings in different
// modes.
type Kind uint8

// These are the kinds without modes. 3 to 6 are collections, whose value is the flat encoding of
// package collection.
const (
	None   Kind = 0 // the key does not exist
	String Kind = 1 // the value is a string of bytes
	Cell   Kind = 2 // the value is the TAT of CL.THROTTLE; other commands treat it as a string

	Hash      Kind = 3
	SortedSet Kind = 4
	List      Kind = 5
	Set       Kind = 6

	Ban Kind = 7 // the value is the bans of a key under a policy: see package ban
)

// These are the first kinds of the limiters with modes. The kind of such a limiter is the sum of
// its first kind and its mode.
const (
	windowKinds Kind = 16
	bucketKinds Kind = 32
	leaseKinds  Kind = 48
)

// remembering is the bit of the kinds of limiters whose value has records of calls after the state:
// see package idempotency. The state in front of them is a state of the kind without the bit,
// except that the state of a cell is never empty.
const remembering Kind = 8

// Kinds is greater than every kind. The keyspace marks some stored kinds with the bit of this
// value; no other package sees that bit.
const Kinds Kind = 64

// Type returns the reply to TYPE for a key of kind k: "none", "string", "hash", "zset", "list",
// "set" or "ratelimit".
func (k Kind) Type() string {
	switch k.Plain() {
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

// Remembers reports whether k is the kind of a limiter that remembers calls.
func (k Kind) Remembers() bool { return k&remembering != 0 }

// Remembering returns the kind of a limiter of the kind k that remembers calls. k must be the kind
// of a limiter.
func (k Kind) Remembering() Kind { return k | remembering }

// Plain returns the kind of the limiter without the calls that it remembers. Other kinds stay the
// same.
func (k Kind) Plain() Kind { return k &^ remembering }

// Ordinal returns the number of k among the kinds of collections, from 0 to 3. k must be the kind
// of a collection.
func (k Kind) Ordinal() int { return int(k - Hash) }

// IsWindow reports whether k is the kind of a limiter of package slidingwindow that remembers no
// calls.
func (k Kind) IsWindow() bool { return k >= windowKinds && k < windowKinds+remembering }

// IsBucket reports whether k is the kind of a limiter of package tokenbucket that remembers no
// calls.
func (k Kind) IsBucket() bool { return k >= bucketKinds && k < bucketKinds+remembering }

// IsLease reports whether k is the kind of a limiter of package concurrency, a lease set, that
// remembers no calls.
func (k Kind) IsLease() bool { return k >= leaseKinds && k < leaseKinds+remembering }

// IsLimiter reports whether k is the kind of a limiter, whether it remembers calls or not. A Ban is none.
func (k Kind) IsLimiter() bool {
	k = k.Plain()
	return k == Cell || k.IsWindow() || k.IsBucket() || k.IsLease()
}

// WindowMode returns the mode of k, which must be the kind of a window or None. For None it returns
// slidingwindow.None.
func (k Kind) WindowMode() slidingwindow.Mode {
	if k == None {
		return slidingwindow.None
	}
	return slidingwindow.Mode(k - windowKinds)
}

// BucketMode returns the mode of k, which must be the kind of a bucket or None. For None it returns
// tokenbucket.None.
func (k Kind) BucketMode() tokenbucket.Mode {
	if k == None {
		return tokenbucket.None
	}
	return tokenbucket.Mode(k - bucketKinds)
}

// LeaseMode returns the mode of k, which must be the kind of a lease set or None. For None it
// returns concurrency.None.
func (k Kind) LeaseMode() concurrency.Mode {
	if k == None {
		return concurrency.None
	}
	return concurrency.Mode(k - leaseKinds)
}

// OfWindow returns the kind of a window with the mode m.
func OfWindow(m slidingwindow.Mode) Kind { return windowKinds + Kind(m) }

// OfBucket returns the kind of a bucket with the mode m.
func OfBucket(m tokenbucket.Mode) Kind { return bucketKinds + Kind(m) }

// OfLease returns the kind of a lease set with the mode m.
func OfLease(m concurrency.Mode) Kind { return leaseKinds + Kind(m) }

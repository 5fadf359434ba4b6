package env

import (
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/limit"
)

// Collections are the keys that have elements. Read calls f with what a key holds, if
// it exists. Write calls f with what it holds, an empty collection if it does not
// exist, and stores what f makes of it: an empty one is no key, the expiry stays what
// it is, and if f changes nothing, nothing has happened.
//
// f is called with locks held: it must be quick, use nothing of the store and keep
// nothing of what it sees. One that may fail looks before it changes anything; its
// error is returned. Other errors are limit.ErrWrongType, limit.ErrFull and
// limit.ErrNotKept; f itself gets collection.ErrFull from a collection of as many
// elements as there may be.
type Collections interface {
	ReadHash(db int, key []byte, f func(h *collection.Hash)) (found bool, err error)
	WriteHash(db int, key []byte, f func(h *collection.Hash) error) error
	ReadSortedSet(db int, key []byte, f func(z *collection.SortedSet)) (found bool, err error)
	WriteSortedSet(db int, key []byte, f func(z *collection.SortedSet) error) error
	ReadList(db int, key []byte, f func(l *collection.List)) (found bool, err error)
	WriteList(db int, key []byte, f func(l *collection.List) error) error
	ReadSet(db int, key []byte, f func(s *collection.Set)) (found bool, err error)
	WriteSet(db int, key []byte, f func(s *collection.Set) error) error
}

// Strings is the half of the store that plain strings and counters need. A cell of
// CL.THROTTLE is a string too, which reads as its TAT in decimal nanoseconds and
// becomes a plain one when it is changed here. Every call is atomic, happens at one
// instant and changes nothing if it returns an error; those that change something
// may return limit.ErrFull and limit.ErrNotKept.
type Strings interface {
	// SetString makes key hold value, whatever it held, and reports whether o let it.
	SetString(db int, key, value []byte, o SetOptions) (done bool, err error)
	// SwapString also returns what key held, as AppendString does. That has to be a string.
	SwapString(dst []byte, db int, key, value []byte, o SetOptions) (old []byte, found, done bool, err error)
	// AddInt adds to the number that key holds, 0 without it.
	AddInt(db int, key []byte, by int64) (sum int64, err error)
	// ExtendString puts more behind the string that key holds, which must not become
	// longer than most.
	ExtendString(db int, key, more []byte, most int) (length int, err error)
	// TakeString is AppendString that deletes the key.
	TakeString(dst []byte, db int, key []byte) (value []byte, found bool, err error)
	// ReadUntil is AppendString that makes the key end at at.
	ReadUntil(dst []byte, db int, key []byte, at limit.Instant) (value []byte, found bool, err error)
	// EachString calls f for what each of keys holds, until it returns false. A value is
	// valid during the call, and as long as a reply refers to it ([resp.Writer.Element]).
	EachString(db int, keys [][]byte, f func(value []byte, found bool) bool)
	// SetStrings makes every even of pairs hold the value behind it for ever. With
	// ifAbsent it does not if one of them exists.
	SetStrings(db int, pairs [][]byte, ifAbsent bool) (done bool, err error)
	// UpdateString makes key hold what f makes of it until the instant it returns; a
	// nil value changes nothing, nor does an error. f runs with locks held.
	UpdateString(db int, key []byte,
		f func(old []byte, found bool, expiry limit.Instant) (value []byte, until limit.Instant, err error)) error
}

// SetOptions say how a string is set.
type SetOptions struct {
	// Expiry is when it is to end, limit.MaxInstant for never; an instant that has
	// passed deletes the key.
	Expiry limit.Instant
	// KeepTTL leaves the expiry of a key that exists as it is.
	KeepTTL bool
	// IfExists and IfAbsent change nothing where the key does not, or does, exist.
	IfExists, IfAbsent bool
}

// KeyRef names a key and its database.
type KeyRef struct {
	DB  int
	Key []byte
}

// BlockedPops are the queues of those who wait for elements of lists and sorted sets, in the
// order of arrival for each key.
type BlockedPops interface {
	// EnqueuePop puts a waiter at the end of the queues of keys, which are locked and stay
	// what they are. DequeuePop takes it out of all, once, while nothing is locked.
	EnqueuePop(db int, keys [][]byte, w PopWait) (ticket any)
	DequeuePop(ticket any)
	// AppendMoves adds to refs the keys that waiters under them would move elements to.
	AppendMoves(refs []KeyRef) []KeyRef
	// Serving says that Serve will be called before what is locked is released. Serve offers
	// the keys that have changed since, and those of MarkReady, to their waiters.
	Serving()
	MarkReady(db int, key []byte)
	Serve(f func(owner any, db int, key []byte) Served)
	// Holds reports whether a key may be used by f.
	IsLocked(key []byte) bool
}

// PopWait is somebody who waits for elements.
type PopWait struct {
	// SortedSet says that it wants those of sorted sets; lists otherwise.
	SortedSet bool
	// Dest is the key that it moves an element to, nil if it does not.
	Dest  []byte
	Owner any
	// Ready is called with locks held when a key has changed and nobody serves it now: it
	// may only start something.
	Ready func(db int, key string)
}

// Served is what came of an attempt to serve a waiter.
type Served uint8

const (
	// ServedYes: it has been answered.
	ServedYes Served = iota
	// ServedGone: its wait is over for another reason.
	ServedGone
	// ServedLater: what it needs is not held.
	ServedLater
)

package env

import (
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/limit"
)

// Hashes has the methods for hashes. The methods of [Lists], [Sets] and [SortedSets] work alike. A
// Read method calls f with the collection at key, if there is one. A Write method calls f with the
// collection at key, or with an empty one if the key does not exist, and stores what f has changed.
// If the collection is empty after that, the key is deleted. The expiry of the key does not change.
// If f changes nothing, the method has no effect.
//
// f is called with locks held: it must be quick, must not use the store and must not keep
// references to the collection or its elements. If f may fail, it has to check before it changes
// anything. The method returns the error of f. Other errors are limit.ErrWrongType, limit.ErrFull
// and limit.ErrNotKept. Methods of the collection return collection.ErrFull to f when the maximum
// number of elements is reached.
type Hashes interface {
	ReadHash(db int, key []byte, f func(h *collection.Hash)) (found bool, err error)
	WriteHash(db int, key []byte, f func(h *collection.Hash) error) error
}

// Lists has the methods for lists: see [Hashes].
type Lists interface {
	ReadList(db int, key []byte, f func(l *collection.List)) (found bool, err error)
	WriteList(db int, key []byte, f func(l *collection.List) error) error
}

// Sets has the methods for sets: see [Hashes].
type Sets interface {
	ReadSet(db int, key []byte, f func(s *collection.Set)) (found bool, err error)
	WriteSet(db int, key []byte, f func(s *collection.Set) error) error
}

// SortedSets has the methods for sorted sets: see [Hashes].
type SortedSets interface {
	ReadSortedSet(db int, key []byte, f func(z *collection.SortedSet)) (found bool, err error)
	WriteSortedSet(db int, key []byte, f func(z *collection.SortedSet) error) error
}

// Strings has the methods for plain strings and counters. A cell of CL.THROTTLE is a string, too:
// it reads as its theoretical arrival time (TAT) in decimal nanoseconds, and becomes a plain string
// when one of these methods changes it. Every call is atomic, happens at one instant and changes
// nothing if it returns an error. Methods that change something may return limit.ErrFull and
// limit.ErrNotKept.
type Strings interface {
	// AppendString reads the string at key. A value of less than shared.Least bytes is appended to
	// dst. A longer one is not copied: value is the stored value itself, and is pinned until the
	// caller has released it by ReplySpan or GiveBack of command.Call.
	AppendString(dst []byte, db int, key []byte) (value []byte, found bool, err error)
	// SetString sets key to value, whatever the type of the old value was. done is false if o did
	// not permit it.
	SetString(db int, key, value []byte, o SetOptions) (done bool, err error)
	// SwapString does what SetString does, and also returns the old value in the way of
	// AppendString. It returns limit.ErrWrongType if the old value is not a string.
	SwapString(dst []byte, db int, key, value []byte, o SetOptions) (old []byte, found, done bool, err error)
	// AddInt adds by to the integer at key and returns the sum. A missing key counts as 0.
	AddInt(db int, key []byte, by int64) (sum int64, err error)
	// ExtendString appends more to the string at key, and returns its new length in bytes. If that
	// would exceed most bytes, it returns limit.ErrTooLong.
	ExtendString(db int, key, more []byte, most int) (length int, err error)
	// TakeString does what AppendString does, and also deletes key.
	TakeString(dst []byte, db int, key []byte) (value []byte, found bool, err error)
	// ReadUntil does what AppendString does, and also sets the expiry of key to at.
	ReadUntil(dst []byte, db int, key []byte, at limit.Instant) (value []byte, found bool, err error)
	// EachString calls f for the value at each of keys in order, until f returns false. found is
	// false if the key does not exist or is not a string. value is valid only during the call, or
	// as long as a reply refers to it ([resp.Writer.Element]).
	EachString(db int, keys [][]byte, f func(value []byte, found bool) bool)
	// SetStrings sets the keys in pairs, a list of alternating keys and values, without an expiry.
	// If ifAbsent is set and one of the keys exists, it changes nothing and done is false.
	SetStrings(db int, pairs [][]byte, ifAbsent bool) (done bool, err error)
	// UpdateString calls f with the string at key and its expiry, and sets key to the value that f
	// returns, with the expiry until. If f returns a nil value or an error, nothing changes. f runs
	// with locks held and must not use the store.
	UpdateString(db int, key []byte,
		f func(old []byte, found bool, expiry limit.Instant) (value []byte, until limit.Instant, err error)) error
}

// SetOptions say how and under which condition a string is set.
type SetOptions struct {
	// Expiry is the instant at which the key expires, limit.MaxInstant for never. If it is in the
	// past, the key is deleted.
	Expiry limit.Instant
	// KeepTTL keeps the expiry of an existing key, instead of setting it to Expiry.
	KeepTTL bool
	// IfExists permits the change only if the key exists, and IfAbsent only if it does not.
	IfExists, IfAbsent bool
}

// KeyRef is a key in the database with the index DB.
type KeyRef struct {
	DB  int
	Key []byte
}

// BlockedPops has the queues of the clients that wait for elements of lists and sorted sets. The
// queue of a key is in the order of arrival.
type BlockedPops interface {
	// EnqueuePop adds the waiter w to the end of the queues of keys in the database db. The shards
	// of keys must be locked, and the caller must not modify the bytes of keys later. DequeuePop
	// removes the waiter of ticket from all queues. It must be called exactly once, while the
	// caller has no locks.
	EnqueuePop(db int, keys [][]byte, w PopWait) (ticket any)
	DequeuePop(ticket any)
	// AppendMoves appends to refs the other keys that may be needed to serve the clients that wait
	// for elements of refs, such as the destinations of BLMOVE, and returns the result. The caller
	// has no locks.
	AppendMoves(refs []KeyRef) []KeyRef
	// Serving says that the caller will call Serve before Unlock, so that other goroutines do not
	// take the elements that waiting clients get. Serve calls f for the waiters of each key that
	// has changed since Serving, or that was passed to MarkReady: owner is the Owner of the waiter,
	// and key has elements of the kind that it waits for.
	Serving()
	MarkReady(db int, key []byte)
	Serve(f func(owner any, db int, key []byte) Served)
	// IsLocked reports whether this store handle has locked the shard of key.
	IsLocked(key []byte) bool
}

// PopWait describes a client that waits for elements.
type PopWait struct {
	// SortedSet says that the client waits for elements of sorted sets. If it is false, the client
	// waits for elements of lists.
	SortedSet bool
	// Dest is the key to which the client moves an element; nil if it does not move elements. Owner
	// is passed to the function that Serve calls.
	Dest  []byte
	Owner any
	// Ready is called with locks held, so it may only start another goroutine. It is called when
	// key has changed and the command that changed it does not serve waiters, or when this client
	// could not be served because keys that it needs are not locked. After a call it is not called
	// again for key until MarkReady.
	Ready func(db int, key string)
}

// Served is the result of the function that [BlockedPops].Serve calls.
type Served uint8

const (
	// ServedYes says that the waiting client has been answered.
	ServedYes Served = iota
	// ServedGone says that the client does not wait any more, for another reason.
	ServedGone
	// ServedLater says that the client cannot be served now, because keys which it needs are not
	// locked.
	ServedLater
)

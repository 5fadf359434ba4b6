package env

import (
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/limit"
)

// Collections has the methods for keys with elements. A Read method calls f with the collection at
// key, if there is one. A Write method calls f with the collection at key, or with an empty one if
// there is none, and stores the changes of f. An empty collection is deleted. The expiry does not
// change. If f changes nothing, there is no effect.
//
// f is called with locks held: it must be quick, must not use the store and must not keep
// references to what it sees. If f may fail, it has to check before it changes anything. Its error
// is returned. Other errors are limit.ErrWrongType, limit.ErrFull and limit.ErrNotKept. Methods of
// the collection return collection.ErrFull to f when the maximum number of elements is reached.
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

// Strings has the methods for plain strings and counters. A cell of CL.THROTTLE is a string, too.
// It reads as its TAT in decimal nanoseconds, and becomes a plain string when one of these methods
// changes it. Every call is atomic, happens at one instant and changes nothing if it returns an
// error. Calls that change something may return limit.ErrFull and limit.ErrNotKept.
type Strings interface {
	// SetString sets key to value, whatever its type was, and reports whether o permitted it.
	SetString(db int, key, value []byte, o SetOptions) (done bool, err error)
	// SwapString is SetString that also returns the old value, as AppendString does. The old value
	// has to be a string.
	SwapString(dst []byte, db int, key, value []byte, o SetOptions) (old []byte, found, done bool, err error)
	// AddInt adds by to the number at key, which is 0 without a key.
	AddInt(db int, key []byte, by int64) (sum int64, err error)
	// ExtendString appends more to the string at key. The result must not be longer than most
	// bytes.
	ExtendString(db int, key, more []byte, most int) (length int, err error)
	// TakeString is AppendString that also deletes the key.
	TakeString(dst []byte, db int, key []byte) (value []byte, found bool, err error)
	// ReadUntil is AppendString that also sets the expiry of the key to at.
	ReadUntil(dst []byte, db int, key []byte, at limit.Instant) (value []byte, found bool, err error)
	// EachString calls f for the values at keys, until it returns false. A value is valid during
	// the call, and while a reply refers to it ([resp.Writer.Element]).
	EachString(db int, keys [][]byte, f func(value []byte, found bool) bool)
	// SetStrings sets each key of pairs, a list of keys and values, without an expiry. With
	// ifAbsent set it changes nothing if one of the keys exists.
	SetStrings(db int, pairs [][]byte, ifAbsent bool) (done bool, err error)
	// UpdateString sets key to the value that f returns, with the expiry until. A nil value, or an
	// error, changes nothing. f runs with locks held.
	UpdateString(db int, key []byte,
		f func(old []byte, found bool, expiry limit.Instant) (value []byte, until limit.Instant, err error)) error
}

// SetOptions say how a string is set.
type SetOptions struct {
	// Expiry is when the key expires, limit.MaxInstant for never. An instant in the past deletes
	// the key.
	Expiry limit.Instant
	// KeepTTL keeps the expiry of an existing key.
	KeepTTL bool
	// IfExists changes nothing if the key does not exist, IfAbsent if it does.
	IfExists, IfAbsent bool
}

// KeyRef names a key and its database.
type KeyRef struct {
	DB  int
	Key []byte
}

// BlockedPops has the queues of clients that wait for elements of lists and sorted sets. For each
// key they are in the order of arrival.
type BlockedPops interface {
	// EnqueuePop adds a waiter to the end of the queues of keys, which are locked and which the
	// caller must not modify later. DequeuePop removes it from all queues. It must be called once,
	// while nothing is locked.
	EnqueuePop(db int, keys [][]byte, w PopWait) (ticket any)
	DequeuePop(ticket any)
	// AppendMoves appends to refs the keys to which waiters under the keys of refs would move
	// elements.
	AppendMoves(refs []KeyRef) []KeyRef
	// Serving says that Serve will be called before Unlock. Serve offers the keys that have changed
	// since, and those of MarkReady, to their waiters.
	Serving()
	MarkReady(db int, key []byte)
	Serve(f func(owner any, db int, key []byte) Served)
	// IsLocked reports whether this store has locked the shard of key.
	IsLocked(key []byte) bool
}

// PopWait is a client that waits for elements.
type PopWait struct {
	// SortedSet says that the client waits for elements of sorted sets; otherwise of lists.
	SortedSet bool
	// Dest is the key to which the client moves an element, nil if it moves none.
	Dest  []byte
	Owner any
	// Ready is called with locks held when a key has changed and the command that changed it does
	// not serve waiters. It may only start something.
	Ready func(db int, key string)
}

// Served is the result of an attempt to serve a waiter.
type Served uint8

const (
	// ServedYes says that the waiter has been answered.
	ServedYes Served = iota
	// ServedGone says that its wait has ended for another reason.
	ServedGone
	// ServedLater says that keys which it needs are not locked.
	ServedLater
)

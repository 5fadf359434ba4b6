package env

import (
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// Store is the state that commands act on, as one worker sees it. Only one goroutine at a time may
// use it. The store owns the clock: no method has a parameter for the present instant.
type Store interface {
	Limiter
	Keys
	Strings
	Collections
	Locker
	BlockedPops

	// Refresh reads the clock. The result is the instant of all calls until the next Refresh. While
	// keys are locked, Refresh only returns their instant.
	Refresh() limit.Instant
	// Now returns the instant of the last Refresh.
	Now() limit.Instant
	// Prefetch may load the values of keys into the processor's cache, because they are about to be
	// used. It changes nothing.
	Prefetch(db int, keys [][]byte)
	// Civil converts an instant of the store to one of the civil clock, which EXPIREAT, EXPIRETIME
	// and TIME use. FromCivil converts back. The two differ after the wall clock was stepped while
	// the server ran.
	Civil(limit.Instant) limit.Instant
	FromCivil(limit.Instant) limit.Instant
	// Observe notifies o of what this store changes, after StartObserving was called on any store.
	// o belongs to this store only.
	Observe(o Observer)
	StartObserving()
	// AfterFunc runs f on its own goroutine after d. stop cancels it.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Limiter decides asks of commands: see [decide.Ask]. A decision is atomic, is made at the store's
// instant and stores its effect. The decision, or an error, is in the ask.
type Limiter interface {
	Decide(a *decide.Ask)
}

// Remote decides asks with state that is not in this process.
type Remote interface {
	// Submit never blocks. done is called once, on any goroutine, when all asks have been answered,
	// at the latest at the store's deadline. Asks about one key are decided in the order of their
	// submission. With together set, all are decided at one instant if one node has all their keys.
	// The asks own their bytes: see [decide.Ask.Own]. After done was called they belong to the
	// caller again, which soon reuses them. An ask that is the Next of another one is also in asks
	// itself: Submit ignores Next.
	Submit(asks []*decide.Ask, together bool, done func())
	// Now returns the instant of the clock that decides.
	Now() limit.Instant
}

// Keys has the methods for keys of any type.
type Keys interface {
	Delete(db int, key []byte) bool
	Exists(db int, key []byte) bool
	// TypeName returns the reply of TYPE, "none" for a missing key. Encoding returns the reply of
	// OBJECT ENCODING.
	TypeName(db int, key []byte) string
	Encoding(db int, key []byte) (string, bool)
	// Weigh returns how many elements the collection at key has, and how many bytes a reply with
	// all of it, or with the string at key, would copy; 0 for a small collection, in which elements
	// are found quickly, and for everything else.
	Weigh(db int, key []byte) (elements, copied int)
	// Expiry returns the instant at which a key expires. has is false for a key without an expiry.
	Expiry(db int, key []byte) (at limit.Instant, has, exists bool)
	// Expire changes the expiry if cond permits it, and reports whether it did. An instant in the
	// past deletes the key.
	Expire(db int, key []byte, at limit.Instant, cond decide.ExpireCondition) bool
	Persist(db int, key []byte) bool
	// Rename moves from to to. With nx set, an existing to is kept and renamed is false.
	Rename(db int, from, to []byte, nx bool) (renamed, found bool)
	// AppendString appends the reply of GET to dst. A value of shared.Least bytes or more is
	// returned as stored instead of copied, and is pinned: the caller has to release it by
	// ReplySpan or GiveBack of command.Call.
	AppendString(dst []byte, db int, key []byte) (value []byte, found bool, err error)
	RandomKey(dst []byte, db int) ([]byte, bool)
	// Scan calls f for the keys of one step and returns the next cursor, 0 at the end. Every key
	// that exists throughout a full iteration is passed to f at least once.
	Scan(db int, cursor uint64, count int, f func(key []byte, typeName string)) (next uint64)
	Len(db int) int
	Flush(db int)
	FlushAll()
	// Full reports whether memory is at its maximum, so that new keys are refused.
	Full() bool
	// Lacks reports whether n more bytes would reach the maximum of memory.
	Lacks(n int64) bool
	MemoryUsage(db int, key []byte) (int64, bool)
	// Stats returns the figures of INFO. The caller has locked nothing or everything.
	Stats() StoreStats
	// Describe calls f for the fields of RL.INFO, each with an integer or a text. by has the
	// parameters that the state does not contain: nil, a *gcra.Quota, or a pointer to the call of
	// another family, of which the limit or capacity is used.
	Describe(db int, key []byte, by any, f func(field, text string, number int64, isText bool)) (found bool, err error)
}

// Locker lets several commands happen at one instant, while all other goroutines wait.
type Locker interface {
	// Enter and Leave bracket a batch. If Enter returns false the world is stopped and nothing may
	// run: the session has to be parked, and NotifyStart wakes it.
	Enter() bool
	Leave()
	// NotifyStart calls wake when the world is started; at once if it is not stopped.
	NotifyStart(wake func())
	// StopWorld keeps all other goroutines from entering and returns after all of them have left.
	// It returns false if another goroutine has stopped the world: the caller has to leave the
	// store and wait for it. WakeWaiting wakes the waiting sessions before the world is started;
	// any goroutine may call it.
	StopWorld() bool
	StartWorld()
	WakeWaiting()
	// Lock locks the shards of refs, and of the keys that watched watches unless it is nil, until
	// Unlock: everything between them happens at one instant. LockAll locks every shard. Unlock
	// does nothing if nothing is locked.
	Lock(refs []KeyRef, watched any)
	LockAll()
	Unlock()
	// Begin says that the locked command has to run to its end: until Unlock nothing is refused for
	// lack of memory, and Full is false, unless memory exceeds the maximum by far.
	Begin()
	// BeginFreeing is Begin without that bound, for a command that frees memory or lifts a limit.
	BeginFreeing()
	// Abandon is Unlock for effects that must be discarded: they, and all later ones, are not
	// recorded. The store must not be used any more.
	Abandon()

	// Watch adds a key to a token, which it creates if token is nil. Changed reports whether one of
	// the keys has been written, has been deleted or has expired since. Unwatch ends that.
	Watch(token any, db int, key []byte) any
	Changed(token any) bool
	Unwatch(token any)

	// Enqueue adds a waiter to the end of the queue of a key and reports whether it is the first.
	// wake is called with locks held when the waiter has become the first or there may be room. It
	// may only start something. First reports whether the waiter is the first now. Dequeue removes
	// it and must be called once.
	Enqueue(db int, key []byte, wake func()) (ticket any, first bool)
	First(ticket any) bool
	Dequeue(ticket any)
}

// Observer is notified of what a store changes. Changed and Flushed are called while the shard is
// locked, Unlocked after it was unlocked.
type Observer interface {
	Changed(key []byte, expired bool)
	Flushed()
	Unlocked()
}

// StoreStats are the figures of the store in INFO: its databases, in order, and its memory.
type StoreStats struct {
	Databases []DatabaseStats
	Memory    MemoryStats
}

// DatabaseStats is a line of INFO keyspace.
type DatabaseStats struct {
	Keys, Expires int64
	AvgTTL        time.Duration
}

// MemoryStats are the figures of the store's memory.
type MemoryStats struct {
	// Dataset is the memory of all keys in bytes. InHeap is the part of it that is in Go's heap.
	// Max is maxmemory, 0 without a bound.
	Dataset, InHeap, Max int64
	// Expired is how many keys have expired since the start.
	Expired int64
}

// Used returns the memory that the process uses for keys and everything else, given the size of its
// heap.
func (m *MemoryStats) Used(heap int64) int64 { return m.Dataset + heap - m.InHeap }

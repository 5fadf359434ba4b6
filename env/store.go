package env

import (
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// Store is the state that commands act on, as one worker sees it. Only one goroutine at a time may
// use it. The store has its own clock, so no method has a parameter for the present instant.
type Store interface {
	Limiter
	Keys
	Strings
	Collections
	Locker
	BlockedPops

	// Refresh reads the clock and returns its instant. All calls until the next Refresh happen at
	// that instant. While keys are locked, Refresh only returns the instant of the lock.
	Refresh() limit.Instant
	// Now returns the instant of the last Refresh.
	Now() limit.Instant
	// Prefetch may load the values of keys of the database db into the processor's cache, because
	// commands are about to use them. It changes nothing.
	Prefetch(db int, keys [][]byte)
	// Civil converts an instant of the store's clock into one of the civil clock, which EXPIREAT,
	// EXPIRETIME and TIME use. FromCivil converts back. The clocks differ if the wall clock was
	// stepped while the server ran.
	Civil(limit.Instant) limit.Instant
	FromCivil(limit.Instant) limit.Instant
	// Observe has the store notify o of its changes from now on, once StartObserving was called on
	// any store. o is used for this store only.
	Observe(o Observer)
	StartObserving()
	// AfterFunc calls f on its own goroutine after d. stop cancels that; it returns false if f was
	// called or cancelled before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Limiter decides the asks of commands: see [decide.Ask]. A decision is atomic, is made at the
// store's instant and stores its effect. Decide puts the decision, or an error, into a.
type Limiter interface {
	Decide(a *decide.Ask)
}

// Remote decides asks with state that is not in this process.
type Remote interface {
	// Submit has asks decided and returns at once. done is called exactly once, on any goroutine,
	// when all of them have been answered. That is at the latest at the deadline of the remote
	// store: asks that are not decided by then get an error.
	//
	// Asks about one key are decided in the order of their submission. If together is set and one
	// node has all their keys, all asks are decided at one instant. The asks own their bytes: see
	// [decide.Ask.Own]. After done was called, the asks belong to the caller again, which soon
	// reuses them. An ask that is the Next of another one must also be in asks itself: Submit
	// ignores Next.
	Submit(asks []*decide.Ask, together bool, done func())
	// Now returns the instant of the clock that decides.
	Now() limit.Instant
}

// Keys has the methods for keys of any type. Each method that has a parameter db acts on that
// database. found, exists and a result of type bool that has no name say whether the key exists,
// unless a comment says otherwise.
type Keys interface {
	Delete(db int, key []byte) bool
	Exists(db int, key []byte) bool
	// TypeName returns the type of key as the reply of TYPE, "none" for a missing key. Encoding
	// returns the reply of OBJECT ENCODING.
	TypeName(db int, key []byte) string
	Encoding(db int, key []byte) (string, bool)
	// Weigh returns the number of elements of the collection at key, and the number of bytes that a
	// reply with all of them copies. For a string, elements is 0. Both are 0 for a small
	// collection, in which elements are found quickly, and for everything else.
	Weigh(db int, key []byte) (elements, copied int)
	// Expiry returns the instant at at which key expires. has is false for a key without an expiry.
	Expiry(db int, key []byte) (at limit.Instant, has, exists bool)
	// Expire sets the expiry of key to at if cond permits it, and reports whether it did. If at is
	// in the past, the key is deleted.
	Expire(db int, key []byte, at limit.Instant, cond decide.ExpireCondition) bool
	Persist(db int, key []byte) bool
	// Rename moves the value at from to the key to. If nx is set and the key to exists, nothing
	// changes and renamed is false. found says whether from exists.
	Rename(db int, from, to []byte, nx bool) (renamed, found bool)
	// AppendString reads the string at key. A value of less than shared.Least bytes is appended to
	// dst. A longer one is not copied: value is the stored value itself, and is pinned until the
	// caller has released it by ReplySpan or GiveBack of command.Call.
	AppendString(dst []byte, db int, key []byte) (value []byte, found bool, err error)
	RandomKey(dst []byte, db int) ([]byte, bool)
	// Scan calls f for the keys of one step of an iteration, about count of them, and returns the
	// cursor of the next step, 0 at the end. Every key that exists during the whole iteration is
	// passed to f at least once. f must not use the store, and key is valid only during the call.
	Scan(db int, cursor uint64, count int, f func(key []byte, typeName string)) (next uint64)
	Len(db int) int
	Flush(db int)
	FlushAll()
	// Full reports whether memory is at maxmemory, so that new keys are refused.
	Full() bool
	// Lacks reports whether n more bytes would bring memory to maxmemory.
	Lacks(n int64) bool
	MemoryUsage(db int, key []byte) (int64, bool)
	// Stats returns the figures of INFO. The caller must have locked nothing or all shards.
	Stats() StoreStats
	// Describe calls f for each field that RL.INFO shows of key: with number, or with text if
	// isText is set. by supplies the parameters that the state does not contain. It is nil, a
	// *gcra.Quota, or a pointer to the call of another family, of which the limit or the capacity
	// is used.
	Describe(db int, key []byte, by any, f func(field, text string, number int64, isText bool)) (found bool, err error)
}

// Locker has the methods by which several commands happen at one instant, while other goroutines
// wait: locks of shards, and the stop of the world, which keeps all other goroutines out of the
// store.
type Locker interface {
	// Enter and Leave bracket a batch. Enter returns false if another goroutine has stopped the
	// world. Then nothing may run: the session has to be parked, and NotifyStart wakes it.
	Enter() bool
	Leave()
	// NotifyStart calls wake when the world is started, or at once if it is not stopped.
	NotifyStart(wake func())
	// StopWorld keeps all other goroutines from entering, and returns when all of them have left.
	// It returns false if another goroutine has stopped the world: the caller has to leave the
	// store and wait. StartWorld ends the stop. WakeWaiting wakes the sessions that wait for it
	// before the world is started; any goroutine may call WakeWaiting.
	StopWorld() bool
	StartWorld()
	WakeWaiting()
	// Lock locks the shards of refs and of the keys that the token watched watches, unless it is
	// nil. Everything until Unlock happens at one instant. LockAll locks every shard. Unlock
	// releases all locks, and does nothing if there are none.
	Lock(refs []KeyRef, watched any)
	LockAll()
	Unlock()
	// Begin says that the locked command must run to its end. Until Unlock, nothing is refused for
	// lack of memory and Full is false, unless memory exceeds its maximum by far.
	Begin()
	// BeginFreeing is Begin for a command that frees memory or lifts a limit: nothing is refused
	// for lack of memory, however much memory is in use.
	BeginFreeing()
	// Abandon is Unlock for effects that must be discarded: neither they nor any later effects of
	// the server are recorded in the journal. The store must not be used any more.
	Abandon()

	// Watch adds key to the watched keys of token and returns the token; it creates a token if
	// token is nil. Changed reports whether one of the watched keys was written or deleted or has
	// expired since it was added. Unwatch ends the watching of all keys.
	Watch(token any, db int, key []byte) any
	Changed(token any) bool
	Unwatch(token any)

	// Enqueue adds a waiter to the end of the queue of key, and reports whether it is the first.
	// wake is called with locks held, so it may only start something. It is called when the waiter
	// has become the first, or when there may be room for the first. First reports whether the
	// waiter of ticket is the first now. Dequeue removes it, and must be called exactly once.
	Enqueue(db int, key []byte, wake func()) (ticket any, first bool)
	First(ticket any) bool
	Dequeue(ticket any)
}

// Observer is notified of the changes of a store. Changed is called for each key that has changed,
// with expired set if its expiry is the reason, and Flushed when databases were flushed. Both are
// called while the shard is locked. Unlocked is called after the shards with changes were unlocked.
type Observer interface {
	Changed(key []byte, expired bool)
	Flushed()
	Unlocked()
}

// StoreStats has the figures of the store that INFO shows: those of its databases, in order of
// their index, and those of its memory.
type StoreStats struct {
	Databases []DatabaseStats
	Memory    MemoryStats
}

// DatabaseStats has the figures of a line of INFO keyspace: the number of keys, the number of keys
// with an expiry, and the average time to live of the latter.
type DatabaseStats struct {
	Keys, Expires int64
	AvgTTL        time.Duration
}

// MemoryStats has the figures of the store's memory.
type MemoryStats struct {
	// Dataset is the memory of all keys in bytes, and InHeap the part of it that is in Go's heap.
	// Max is maxmemory in bytes; 0 means no bound.
	Dataset, InHeap, Max int64
	// Expired is the number of keys that have expired since the start.
	Expired int64
}

// Used returns the memory in bytes that the process uses for keys and for everything else. heap is
// the size of Go's heap in bytes, which includes InHeap.
func (m *MemoryStats) Used(heap int64) int64 { return m.Dataset + heap - m.InHeap }

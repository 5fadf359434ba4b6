package env

import (
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// Store is the access of a worker to the state on which commands act: the clock, the decisions, the
// queues of clients that wait for room, and the figures. Every server has it, whether the keys are
// in this process or in the store of --store. Only one goroutine at a time may use it. The store
// has its own clock, so no method has a parameter for the present instant.
//
// A store with the keys in this process is a [Local]. A handler that needs one of its interfaces
// declares that: see command.On. A server with --store does not use such handlers.
type Store interface {
	Clock
	Decider
	Queues
	Figures
}

// Local is a store whose keys are in this process. It has all interfaces of this package about
// stores. Commands use the narrow ones: only the parts that serve all commands use Local.
type Local interface {
	Store
	World
	Locker
	Watcher
	Keys
	Databases
	Inspector
	Memory
	Strings
	Hashes
	Lists
	Sets
	SortedSets
	BlockedPops
	Observable
	Recording
}

// Clock is the clock of a store.
type Clock interface {
	// Refresh reads the clock and returns its instant. All calls until the next Refresh happen at
	// that instant, unless the shard that they access is at a later one. While keys are locked,
	// Refresh only returns the instant of the lock.
	Refresh() limit.Instant
	// Now returns the instant of the last Refresh.
	Now() limit.Instant
	// Civil converts an instant of the store's clock into one of the civil clock, which EXPIREAT,
	// EXPIRETIME and TIME use. FromCivil converts back. The clocks differ if the wall clock was
	// stepped while the server ran.
	Civil(limit.Instant) limit.Instant
	FromCivil(limit.Instant) limit.Instant
	// AfterFunc calls f on its own goroutine after d. stop cancels that; it returns false if f was
	// called or cancelled before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Decider decides the asks of commands: see [decide.Ask]. A decision is atomic, is made at the
// store's instant and stores its effect. Decide puts the decision, or an error, into a.
type Decider interface {
	Decide(a *decide.Ask)
}

// Queues has the queues of the clients that wait for room under the limits of a key.
type Queues interface {
	// Enqueue adds a waiter to the queue of each of keys, after the waiters of its rank and before the waiters of a
	// higher one, and reports whether it is the first in all of them. No other waiter comes between two of them, so two
	// waiters are in the same order in all queues that both are in. tickets are the places of the waiter, in the order
	// of keys. wake is called with locks held, so it may only start another goroutine. It is called when the waiter has
	// become the first in a queue, or when there may be room for the first. First reports whether the waiter of ticket
	// is the first now. Dequeue removes it, and must be called exactly once for each ticket.
	Enqueue(keys []KeyRef, rank int64, wake func()) (tickets []any, first bool)
	First(ticket any) bool
	Dequeue(ticket any)
}

// Figures has the figures of the store.
type Figures interface {
	// Stats returns the figures of INFO. The caller must have locked nothing or all shards. If no
	// key is in this process, the result has no databases.
	Stats() StoreStats
}

// Remote decides asks with state that is not in this process.
type Remote interface {
	// Submit begins to decide asks and returns at once. done is called exactly once, on any
	// goroutine, when all of them have been answered. That is at the latest at the deadline of the
	// remote store: asks that are not decided by then get an error.
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

// World is the set of goroutines that are inside a store. One goroutine can stop the world, to keep
// all others out of the store. A store without keys is not a World, because it has no data that a
// command could lock.
type World interface {
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
}

// Locker has the methods by which several commands happen at one instant, while other goroutines
// wait for the locks of shards.
type Locker interface {
	// Lock locks the shards of refs and of the keys that the token watched watches, unless it is
	// nil. Everything until Unlock happens at one instant. LockAll locks every shard. Unlock
	// releases all locks, and does nothing if there are none.
	Lock(refs []KeyRef, watched any)
	LockAll()
	Unlock()
	// Begin says that the locked command must run to its end. Until Unlock, nothing is refused for
	// lack of memory and Full is false, unless memory exceeds its maximum by far.
	Begin()
	// BeginFreeing does what Begin does, for a command that frees memory or lifts a limit: nothing
	// is refused for lack of memory, however much memory is in use.
	BeginFreeing()
	// Abandon does what Unlock does, for effects that must be discarded: neither these nor any
	// later effects of the server are recorded in the journal. The store must not be used any more.
	Abandon()
}

// Watcher has the keys that clients watch for the next transaction.
type Watcher interface {
	// Watch adds key to the watched keys of token and returns the token; it creates a token if
	// token is nil. Changed reports whether one of the watched keys was written or deleted or has
	// expired since it was added. Unwatch ends the watching of all keys.
	Watch(token any, db int, key []byte) any
	Changed(token any) bool
	Unwatch(token any)
}

// Observable is a store that notifies observers of its changes.
type Observable interface {
	// Observe makes the store notify o of its changes from now on, once StartObserving was called
	// on any store. o is used for this store only.
	Observe(o Observer)
	StartObserving()
}

// Observer is notified of the changes of a store. Changed is called for each key that has changed,
// with expired set if its expiry is the reason, and Flushed when databases were flushed. Both are
// called while the shard is locked. Unlocked is called after the shards with changes were unlocked.
type Observer interface {
	Changed(key []byte, expired bool)
	Flushed()
	Unlocked()
}

// StoreStats has the figures of the store that INFO shows: the figures of its databases, in order
// of their index, and the figures of its memory.
type StoreStats struct {
	Databases []DatabaseStats
	Memory    MemoryStats
}

// DatabaseStats has the figures of a line of INFO keyspace: the number of keys, the number of keys
// with an expiry, and the average time to live of these keys.
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

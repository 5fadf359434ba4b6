package env

import (
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// Store is the state that commands act on, as one worker sees it. It is used by one
// goroutine at a time. The store owns the clock: no method takes an instant that
// is "now".
type Store interface {
	Limiter
	Keys
	Strings
	Collections
	Locker
	BlockedPops

	// Refresh reads the clock: the instant of all that follows, until the next
	// Refresh. While keys are locked it only returns their instant.
	Refresh() limit.Instant
	// Now is the instant of the last Refresh.
	Now() limit.Instant
	// Prefetch may bring what these keys hold closer, since they are about to be
	// used; it changes nothing.
	Prefetch(db int, keys [][]byte)
	// Civil turns an instant of the store into one of the civil clock, which
	// EXPIREAT, EXPIRETIME and TIME speak; FromCivil is the way back. They differ
	// after the wall clock was stepped while the server ran.
	Civil(limit.Instant) limit.Instant
	FromCivil(limit.Instant) limit.Instant
	// Observe makes o, of all stores their own, hear of what this one changes, once
	// StartObserving was called on any.
	Observe(o Observer)
	StartObserving()
	// AfterFunc runs f on its own goroutine after d; the result stops it.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Limiter decides what commands ask: see [decide.Ask]. It is atomic, happens at the store's
// instant and stores the effect. The answer, or an error, is in the ask.
type Limiter interface {
	Decide(a *decide.Ask)
}

// Remote decides asks with state that is not in this process.
type Remote interface {
	// Submit never blocks. done is called once, on any goroutine, when all asks have been
	// answered, which is within the store's deadline. Asks about one key are decided in the
	// order in which they were submitted. With together, all are decided at one instant if
	// one node has all their keys. The asks own their bytes: see [decide.Ask.Own]. They are
	// the caller's again once done is called, and soon stand for something else. One that is
	// the Next of another is among asks, too, and has no other meaning there.
	Submit(asks []*decide.Ask, together bool, done func())
	// Now is the instant of the clock that decides.
	Now() limit.Instant
}

// Keys is the administrative half of the store.
type Keys interface {
	Delete(db int, key []byte) bool
	Exists(db int, key []byte) bool
	// TypeName is what TYPE replies, "none" for a missing key; Encoding is what
	// OBJECT ENCODING replies.
	TypeName(db int, key []byte) string
	Encoding(db int, key []byte) (string, bool)
	// Weigh says how many elements the collection at key has, and how many bytes a reply
	// with all of it, or with the string there, would copy; 0 for a small one, whose
	// elements are found at a glance, and for all else.
	Weigh(db int, key []byte) (elements, copied int)
	// Expiry returns the instant a key expires at; has is false for a key that
	// never does.
	Expiry(db int, key []byte) (at limit.Instant, has, exists bool)
	// Expire changes it if cond allows and reports whether it did; an instant that
	// has passed deletes the key.
	Expire(db int, key []byte, at limit.Instant, cond decide.ExpireCondition) bool
	Persist(db int, key []byte) bool
	// Rename moves from to to. With nx an existing to is left alone and renamed is
	// false.
	Rename(db int, from, to []byte, nx bool) (renamed, found bool)
	// AppendString appends to dst what GET replies. A value of shared.Least bytes or more
	// is returned as it is stored instead, and kept: ReplySpan or GiveBack of command.Call
	// has to release it.
	AppendString(dst []byte, db int, key []byte) (value []byte, found bool, err error)
	RandomKey(dst []byte, db int) ([]byte, bool)
	// Scan calls f for the keys of one step and returns the next cursor, 0 at the
	// end. Every key that exists throughout a full iteration is seen at least once.
	Scan(db int, cursor uint64, count int, f func(key []byte, typeName string)) (next uint64)
	Len(db int) int
	Flush(db int)
	FlushAll()
	// Full reports whether memory is at its maximum, so that new keys are refused.
	Full() bool
	// Lacks reports whether n bytes more would bring memory to its maximum.
	Lacks(n int64) bool
	MemoryUsage(db int, key []byte) (int64, bool)
	// Stats counts what INFO shows; the caller holds nothing or everything.
	Stats() StoreStats
	// Describe reports what RL.INFO shows, as fields with an integer or a text. by has
	// the parameters that the state lacks: nil, or a *gcra.Quota or a pointer to the
	// call of another family, of which the limit or capacity counts.
	Describe(db int, key []byte, by any, f func(field, text string, number int64, isText bool)) (found bool, err error)
}

// Locker lets several commands happen at one instant, and everything else wait.
type Locker interface {
	// Enter brackets a batch; false means that the world is stopped and nothing may
	// run: park, and be woken through NotifyStart.
	Enter() bool
	Leave()
	// NotifyStart calls wake once the world lock is open; at once if it is open already.
	NotifyStart(wake func())
	// StopWorld keeps everybody else from entering and returns once all others have
	// left; false if somebody else has closed it, who has to be waited for outside.
	// WakeWaiting wakes those who wait all the same; any goroutine may call it.
	StopWorld() bool
	StartWorld()
	WakeWaiting()
	// Hold locks the shards of refs, and of what is watched unless that is nil,
	// until Release: everything in between happens at one instant. LockAll locks
	// every shard. Release does nothing when nothing is locked.
	Lock(refs []KeyRef, watched any)
	LockAll()
	Unlock()
	// Begin says that what is locked is to come to its end: until Release nothing of it is
	// refused for want of memory, and Full is false, unless it goes far beyond the bound.
	Begin()
	// BeginFreeing is Begin without that bound, for what ends with less memory or lifts a limit.
	BeginFreeing()
	// Abandon is Release for what must never have happened: nothing of it, nor of
	// anything later, is recorded. The store is not to be used any more.
	Abandon()

	// Watch adds a key to a token, which is made when it is nil. Changed reports
	// whether a key has been written, deleted or has expired since; Unwatch ends it.
	Watch(token any, db int, key []byte) any
	Changed(token any) bool
	Unwatch(token any)

	// Enqueue puts a waiter at the end of the queue of a key and reports whether it
	// is the first. wake is called with locks held, when the waiter has become the
	// first or there may be room: it may only start something. First reports whether
	// it is the first now, Dequeue takes it out, once.
	Enqueue(db int, key []byte, wake func()) (ticket any, first bool)
	First(ticket any) bool
	Dequeue(ticket any)
}

// Observer is told what a store changes, while the shard is locked, and when it is not
// locked any more. See the methods of observer.
type Observer interface {
	Changed(key []byte, expired bool)
	Flushed()
	Unlocked()
}

// StoreStats is what INFO says of the store: its databases, in order, and what they
// take.
type StoreStats struct {
	Databases []DatabaseStats
	Memory    MemoryStats
}

// DatabaseStats is a line of INFO keyspace.
type DatabaseStats struct {
	Keys, Expires int64
	AvgTTL        time.Duration
}

// MemoryStats is what the store says of its memory.
type MemoryStats struct {
	// Dataset is what keys take, in bytes, and InHeap what of that is in Go's heap. Max
	// is maxmemory, 0 without a bound.
	Dataset, InHeap, Max int64
	// Expired is how many keys have expired since the start.
	Expired int64
}

// Used is what the process takes for keys and everything else, given its heap.
func (m *MemoryStats) Used(heap int64) int64 { return m.Dataset + heap - m.InHeap }

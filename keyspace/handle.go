package keyspace

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/keyspace/waiting"
	"github.com/cellserver/cellserver/keyspace/world"
	"github.com/cellserver/cellserver/limit"
)

// Keyspace holds all keys of a server. Any goroutine may call the methods.
type Keyspace struct {
	shards    []shard
	databases int
	shift     int // 64 - log2(len(shards))
	clock     clock.Clock
	every     time.Duration                    // interval of Run: see Options.Housekeeping
	swept     func(longest, all time.Duration) // may be nil: see Options.Swept
	arena     *dense.Arena                     // nil if a test supplies newTable
	world     world.Lock
	journal   atomic.Pointer[Journal] // nil if effects are not recorded
	most      atomic.Int64            // see Options.MaxElements
	common

	abandoned atomic.Bool                    // see Abandon
	observing atomic.Bool                    // observers are notified; never becomes false again
	attentive atomic.Bool                    // there is or was a journal, or observers are notified
	epoch     atomic.Uint32                  // number of calls of ResetInstants
	expiry    atomic.Bool                    // the removal of expired keys is suspended: see SuspendExpiry
	observer  atomic.Pointer[sharedObserver] // see ObserveSweep

	sweepMu sync.Mutex
	sweeper sweeper // guarded by sweepMu

	applier   applier         // see ApplyRecord
	watermark world.Watermark // see Watermark
}

// Handle gives one goroutine access to the keyspace. A handle has the instant of the current batch,
// the locked shards and scratch memory. Only one goroutine at a time may use a handle.
//
// Every method that takes a key locks the key's shard until the method returns, unless the handle
// holds the shard already. The method happens at the handle's instant or at the latest instant of
// the shard, whichever is later. Both then advance to that instant.
type Handle struct {
	ks     *Keyspace
	now    limit.Instant
	epoch  uint32       // the keyspace's epoch when now was read
	member world.Member // records whether this handle is in a batch

	lookups
	locks
	decisions
	recording
	pops     waiting.Server // the queues that the handle serves
	observed observed       // the observer, and what the handle has yet to do for it

	objects [object.Kinds]object.Object // scratch for reading and changing small collections
}

// lookups has data about the keys that a handle is about to look up.
type lookups struct {
	known known  // keys that Prefetch has hashed
	spots []spot // memory that spread and inOrder reuse
	found place  // memory that visit reuses
}

// locks describes what a handle has locked or claimed.
type locks struct {
	holding bool     // Lock, LockAll or claim was called, and Unlock was not
	held    shardSet // locked shards
	claimed claimed
	slack   int64 // bytes by which memory may exceed its bound: see Begin
	refused bool  // the journal has refused an effect under the present locks
}

// claimed describes the keys that a handle has claimed.
type claimed struct {
	any    bool          // keys are claimed
	shards shardSet      // of the claimed keys
	inside *shard        // shard that the handle has entered, or nil
	last   limit.Instant // instant that inside had before
}

// decisions has the scratch memory for deciding limiters. Every ask overwrites it.
type decisions struct {
	plan    decide.Rounds // an ask about one key uses only its Plan
	several several       // the present RL.MULTI
	settles decide.Settlements
	scratch []byte // memory for a new value before it is stored
	delta   []byte // delta of a plan
}

// recording has the effects that a handle is about to give to the journal, and counts those it has
// given.
type recording struct {
	recorder  recorder // effects under the present locks that the journal has yet to receive
	position  uint64   // see TakePosition
	unsettled int      // see Unsettled
	effects   uint64   // number of records: see Effects
}

// NewHandle returns a new handle, whose instant is read from the clock. [Handle.Close] must be
// called when the handle is no longer needed.
func (ks *Keyspace) NewHandle() *Handle {
	v := &Handle{ks: ks, epoch: ks.epoch.Load()}
	v.now = ks.clock.Now()
	ks.world.Add(&v.member)
	return v
}

// Close removes the handle from the keyspace. The handle must hold no keys and be in no batch.
func (v *Handle) Close() { v.ks.world.Remove(&v.member) }

// Refresh advances the handle's instant to the present instant of the clock, and returns the
// handle's instant. After [Keyspace.ResetInstants] it does so even if the clock's instant is
// earlier. All that the handle does until the next Refresh happens at this instant, unless a shard
// is at a later one. While the handle holds keys, its instant is fixed, and Refresh only returns
// it.
func (v *Handle) Refresh() limit.Instant {
	if !v.holding {
		// Read the epoch first. Then the reading of the clock cannot be from an earlier epoch.
		anew := v.renew()
		if now := v.ks.clock.Now(); anew || now > v.now {
			v.now = now
		}
	}
	return v.now
}

// renew reports whether instants have been reset since the last call, and notes the present epoch.
func (v *Handle) renew() bool {
	epoch := v.ks.epoch.Load()
	anew := epoch != v.epoch
	v.epoch = epoch
	return anew
}

// Now returns the handle's instant: the one that the last Refresh has read, or a later instant of a
// shard that this handle has locked since.
func (v *Handle) Now() limit.Instant { return v.now }

// Enter begins a batch and returns true. While the world is stopped Enter begins nothing and
// returns false: the caller then has to wait until [world.Lock.NotifyStart] calls it back. Enter
// costs one atomic store and a few atomic loads.
func (v *Handle) Enter() bool { return v.ks.world.Enter(&v.member) }

// Leave ends the batch that Enter has begun.
func (v *Handle) Leave() {
	v.known.n = 0 // the memory of the prefetched keys is about to be reused
	v.member.Leave()
}

// StopWorld stops the world for all handles but this one, and reports whether it could: see
// [world.Lock.Stop].
func (v *Handle) StopWorld() bool { return v.ks.world.Stop(&v.member) }

// Keyspace returns the keyspace to which the handle belongs.
func (v *Handle) Keyspace() *Keyspace { return v.ks }

// applier has the handle with which records of several effects are applied. mu allows one record at
// a time.
type applier struct {
	mu     sync.Mutex
	handle *Handle // guarded by mu
}

// sweeper has the progress of active expiry.
type sweeper struct {
	handle *Handle
	shard  int // index of the shard that is swept next
	left   int // entries that the present slice may still examine; tables decrement it
}

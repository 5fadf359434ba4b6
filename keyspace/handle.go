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
	shift     int // 64 - log2(len(shards)): the shift that turns a hash into the index of a shard
	clock     clock.Clock
	every     time.Duration                    // interval between two rounds of Run: see Options.Housekeeping
	swept     func(longest, all time.Duration) // Options.Swept: called at the end of each sweep; may be nil
	arena     *dense.Arena                     // the memory of the tables; nil if a test supplies newTable
	world     world.Lock
	journal   atomic.Pointer[Journal] // the log that receives all effects; nil if effects are not recorded
	most      atomic.Int64            // maximum number of elements of a collection: see Options.MaxElements
	common

	abandoned atomic.Bool                    // no more effects are recorded: see Abandon
	observing atomic.Bool                    // observers are notified; never false again once true
	attentive atomic.Bool                    // there is or was a journal, or observers are notified
	epoch     atomic.Uint32                  // number of calls of ResetInstants
	expiry    atomic.Bool                    // the removal of expired keys is suspended: see SuspendExpiry
	observer  atomic.Pointer[sharedObserver] // the observer of sweeps, or nil: see ObserveSweep

	sweepMu sync.Mutex
	sweeper sweeper // progress of active expiry; guarded by sweepMu

	applier   applier         // the handle that ApplyRecord uses
	watermark world.Watermark // what the method Watermark returns
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
	pops     waiting.Server // the queues of waiters that the handle has to serve
	observed observed       // the observer of changes, and the notifications that it has yet to get

	objects [object.Kinds]object.Object // scratch for reading and changing small collections
}

// lookups has data about the keys that a handle is about to look up.
type lookups struct {
	known known  // keys that Prefetch has hashed
	spots []spot // memory for the spots of a command; spread and inOrder reuse it
	found place  // memory for the place of one key; visit reuses it
}

// locks describes what a handle has locked or claimed.
type locks struct {
	holding bool     // Lock, LockAll or claim was called, and Unlock was not
	held    shardSet // set of the locked shards
	claimed claimed
	slack   int64 // number of bytes by which memory may exceed its bound: see Begin
	refused bool  // the journal has refused an effect under the present locks
}

// claimed describes the keys that a handle has claimed.
type claimed struct {
	any    bool          // whether any keys are claimed
	shards shardSet      // set of the shards of the claimed keys
	inside *shard        // shard that the handle has entered, or nil
	last   limit.Instant // the instant of the shard inside before the handle entered it
}

// decisions has the scratch memory for deciding limiters. Every ask overwrites it.
type decisions struct {
	plan    decide.Rounds // an ask about one key uses only its Plan
	several several       // the RL.MULTI that is being decided
	settles decide.Settlements
	scratch []byte // memory for a new value before it is stored
	delta   []byte // the delta of a plan, before it is recorded
}

// recording has the effects that a handle is about to give to the journal, and counts those it has
// given.
type recording struct {
	recorder  recorder // effects under the present locks that the journal has yet to receive
	position  uint64   // the journal's position after the last record: see TakePosition
	unsettled int      // number of charges whose records may not be durable yet: see Unsettled
	effects   uint64   // number of records that the handle has made: see Effects
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
	handle *Handle // the handle, which is used only with mu locked
}

// sweeper has the progress of active expiry.
type sweeper struct {
	handle *Handle
	shard  int // index of the shard that is swept next
	left   int // entries that the present slice may still examine; tables decrement it
}

package keyspace

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/keyspace/world"
	"github.com/cellserver/cellserver/limit"
)

// Keyspace holds all keys of a server. Its methods may be called from any goroutine.
type Keyspace struct {
	shards    []shard
	databases int
	shift     int // 64 - log2(len(shards))
	clock     clock.Clock
	every     time.Duration
	swept     func(longest, all time.Duration) // may be nil: see Options.Swept
	arena     *dense.Arena                     // nil if a test supplies newTable
	world     world.Lock
	journal   atomic.Pointer[Journal] // nil if effects are not recorded
	most      atomic.Int64            // maximum number of elements of a collection
	common

	abandoned atomic.Bool                    // see Abandon
	observing atomic.Bool                    // observers are notified; never false again
	attentive atomic.Bool                    // there is or was a journal, or observers are notified
	epoch     atomic.Uint32                  // number of calls of ResetInstants
	expiry    atomic.Bool                    // active expiry is suspended: see SuspendExpiry
	observer  atomic.Pointer[sharedObserver] // see ObserveSweep

	sweepMu sync.Mutex
	sweeper sweeper // guarded by sweepMu

	applier   applier         // see ApplyRecord
	watermark world.Watermark // see Watermark
}

// Handle gives one goroutine access to the keyspace. It has the instant of the current batch, the
// locked shards and scratch memory. Only one goroutine at a time may use a handle.
//
// Every method that takes a key locks the key's shard for its own duration. It happens at the later
// of the batch's instant and the latest instant of the shard, and the handle's own instant advances
// to it.
type Handle struct {
	ks     *Keyspace
	now    limit.Instant
	epoch  uint32       // the keyspace's epoch when now was read
	member world.Member // says whether this handle runs a batch

	lookups
	locks
	decisions
	recording
	popServer
	observed observed // changes of which the observer is notified

	objects [object.Kinds]object.Object // scratch for reading and changing small collections
}

// lookups is what a handle knows of the keys that it is about to look up.
type lookups struct {
	known known  // keys that Prefetch has hashed
	spots []spot // scratch of spread
	found place  // scratch of visit
}

// locks is what a handle has locked or claimed.
type locks struct {
	holding bool
	held    shardSet
	claimed claimed
	slack   int64 // bytes by which memory may exceed its bound: see Begin
	refused bool  // the journal has refused an effect under the present locks
}

// claimed is what a handle has claimed.
type claimed struct {
	any    bool
	shards shardSet      // of the claimed keys
	inside *shard        // shard that the handle has entered, or nil
	last   limit.Instant // instant of that shard before
}

// decisions is the scratch state for deciding limiters. Every ask overwrites it.
type decisions struct {
	plan    decide.Rounds // an ask about one key uses only its Plan
	several several
	scratch []byte // memory for a new value before it is stored
	delta   []byte // delta of a plan
}

// recording is what a handle has given to the journal, or is about to give.
type recording struct {
	recorder  recorder // effects under the present locks
	position  uint64   // see TakePosition
	unsettled int      // see Unsettled
	effects   uint64
}

// NewHandle returns a new handle. A handle that is no longer needed must be closed.
func (ks *Keyspace) NewHandle() *Handle {
	v := &Handle{ks: ks, epoch: ks.epoch.Load()}
	v.now = ks.clock.Now()
	ks.world.Add(&v.member)
	return v
}

// Close removes the handle from the keyspace. The handle must not hold anything.
func (v *Handle) Close() { v.ks.world.Remove(&v.member) }

// Refresh reads the clock and returns the instant of all that follows until the next Refresh. While
// the handle holds keys their instant is fixed, and Refresh only returns it.
func (v *Handle) Refresh() limit.Instant {
	if !v.holding {
		// Read the epoch first: then the clock's reading cannot be of an earlier epoch.
		anew := v.renew()
		if now := v.ks.clock.Now(); anew || now > v.now {
			v.now = now
		}
	}
	return v.now
}

// renew reports, once, whether instants have been reset since this handle read the clock.
func (v *Handle) renew() bool {
	epoch := v.ks.epoch.Load()
	anew := epoch != v.epoch
	v.epoch = epoch
	return anew
}

// Now returns the handle's instant: that of the last Refresh, or a later one of a shard that this
// handle has locked since.
func (v *Handle) Now() limit.Instant { return v.now }

// Enter begins a batch. While the world lock is closed it returns false and begins nothing: the
// caller parks until [world.Lock.NotifyStart] wakes it. Enter costs one atomic store and one load.
func (v *Handle) Enter() bool { return v.ks.world.Enter(&v.member) }

// Leave ends a batch.
func (v *Handle) Leave() {
	v.known.n = 0 // the memory of the keys is about to be reused
	v.member.Leave()
}

// StopWorld stops the world for all other handles: see [world.Lock.Stop].
func (v *Handle) StopWorld() bool { return v.ks.world.Stop(&v.member) }

// Keyspace returns the keyspace of the handle.
func (v *Handle) Keyspace() *Keyspace { return v.ks }

// applier applies records of several effects.
type applier struct {
	mu     sync.Mutex
	handle *Handle // guarded by mu
}

// sweeper is the progress of active expiry.
type sweeper struct {
	handle *Handle
	shard  int
	left   int // rest of a slice's budget; tables decrement it
}

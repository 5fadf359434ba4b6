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

// Keyspace is all keys of a server. Its methods may be called from any goroutine.
type Keyspace struct {
	shards    []shard
	databases int
	shift     int // 64 - log2(len(shards))
	clock     clock.Clock
	every     time.Duration
	swept     func(longest, all time.Duration) // nil tells nobody
	arena     *dense.Arena                     // nil if newTable is a test's
	world     world.Lock
	journal   atomic.Pointer[Journal] // nil keeps nothing
	most      atomic.Int64            // elements of a collection
	common

	abandoned atomic.Bool                    // see Abandon
	observing atomic.Bool                    // observers are told; never false again
	attentive atomic.Bool                    // there is or was a journal, or observers are told
	epoch     atomic.Uint32                  // how often ResetInstants was called
	expiry    atomic.Bool                    // is held: see SuspendExpiry
	observer  atomic.Pointer[sharedObserver] // see ObserveSweep

	sweepMu sync.Mutex
	sweeper sweeper // guarded by sweepMu

	applier   applier         // see ApplyRecord
	watermark world.Watermark // see Watermark
}

// Handle is the keyspace as one goroutine sees it: the instant of its batch, the
// shards it holds, its scratch. A handle is used by one goroutine at a time.
//
// Every method that takes a key locks the key's shard for its own duration. What
// it does happens at the later of the batch's instant and the latest instant of
// the shard, and the handle's own instant moves up to that.
type Handle struct {
	ks     *Keyspace
	now    limit.Instant
	epoch  uint32       // the keyspace's when now was read
	member world.Member // where it says whether it runs a batch

	lookups
	locks
	decisions
	recording
	popServer
	observed observed // what the observer has to be told, and is told

	objects [object.Kinds]object.Object // what small collections are read and changed in
}

// lookups is what a handle knows of the keys that it is about to look for.
type lookups struct {
	known known  // what Prefetch has hashed
	spots []spot // scratch of spread
	found place  // scratch of visit
}

// locks is what a handle has locked or claimed.
type locks struct {
	holding bool
	held    shardSet
	claimed claimed
	slack   int64 // how far beyond its bound memory may go: see Begin
	refused bool  // the journal has refused something of what is locked
}

// claimed is what a handle knows of the keys that it claims.
type claimed struct {
	any    bool
	shards shardSet      // where the keys are
	inside *shard        // that the handle has entered
	last   limit.Instant // which was the shard's
}

// decisions are what limiters are decided with, anew for every ask.
type decisions struct {
	plan    decide.Rounds // of which the plan is used alone for an ask about one key
	several several
	scratch []byte // where a family makes a value that has no memory yet
	delta   []byte // what a plan changes
}

// recording is what a handle has told the journal, or is about to.
type recording struct {
	recorder  recorder // what was done under the present locks
	position  uint64   // see TakePosition
	unsettled int      // see Unsettled
	effects   uint64
}

// NewHandle makes a handle. A handle that is not needed any more must be closed.
func (ks *Keyspace) NewHandle() *Handle {
	v := &Handle{ks: ks, epoch: ks.epoch.Load()}
	v.now = ks.clock.Now()
	ks.world.Add(&v.member)
	return v
}

// Close takes the handle out of the keyspace. It must not hold anything.
func (v *Handle) Close() { v.ks.world.Remove(&v.member) }

// Refresh reads the clock and returns the instant of all that follows until the
// next Refresh. While keys are locked there is only one instant, which it returns.
func (v *Handle) Refresh() limit.Instant {
	if !v.holding {
		// The epoch is read first: what the clock shows then is of no earlier one.
		anew := v.renew()
		if now := v.ks.clock.Now(); anew || now > v.now {
			v.now = now
		}
	}
	return v.now
}

// renew reports whether instants have been reset since this handle read the clock, once.
func (v *Handle) renew() bool {
	epoch := v.ks.epoch.Load()
	anew := epoch != v.epoch
	v.epoch = epoch
	return anew
}

// Now is the instant of the last Refresh, or of what this handle did last in a shard
// where another handle had been later.
func (v *Handle) Now() limit.Instant { return v.now }

// Enter begins a batch. It returns false, and nothing is begun, when the world lock is
// closed: the caller parks and has [world.Lock.NotifyStart] wake it. It costs one atomic store
// and one load.
func (v *Handle) Enter() bool { return v.ks.world.Enter(&v.member) }

// Leave ends a batch.
func (v *Handle) Leave() {
	v.known.n = 0 // their memory is about to hold something else
	v.member.Leave()
}

// StopWorld stops the world for everybody else: see [world.Lock.Stop].
func (v *Handle) StopWorld() bool { return v.ks.world.Stop(&v.member) }

// Keyspace is what the handle looks at.
func (v *Handle) Keyspace() *Keyspace { return v.ks }

// applier is what records of several effects are applied with.
type applier struct {
	mu     sync.Mutex
	handle *Handle // guarded by mu
}

// sweeper is where active expiry has got to.
type sweeper struct {
	handle *Handle
	shard  int
	left   int // of a slice's budget: tables count it down
}

package keyspace

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/world"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// Options are what a [Keyspace] is made of. The zero value of each field but Clock
// means its default.
type Options struct {
	// Databases is how many databases there are, at most 16, which is the default.
	Databases int
	// Shards is how many locks the keys are divided over: a power of two of at most
	// 256, 64 by default.
	Shards int
	// Clock is where all instants come from. It must be set.
	Clock clock.Clock
	// MaxMemory is the number of bytes from which on new keys are refused; 0 means
	// no bound. [Keyspace.SetMaxMemory] changes it.
	MaxMemory int64
	// MaxElements is the most elements of a collection; [DefaultMaxElements] by
	// default. [Keyspace.SetMaxElements] changes it.
	MaxElements int
	// Housekeeping is how often Run samples the clock and sweeps; 100 ms by default,
	// which is also the longest that a suspended machine may stay unnoticed.
	Housekeeping time.Duration

	// Swept is told of each round of the removal of keys that have expired how long a shard was
	// locked at most, and how long all shards were one after the other; nil tells nobody.
	Swept func(longest, all time.Duration)

	newTable newTable // a test's own
}

const defaultShards = 64

// New makes an empty keyspace. It panics on a number of shards that is no power of
// two up to 256.
func New(o Options) *Keyspace {
	ks := &Keyspace{
		databases: cmp.Or(o.Databases, System),
		clock:     o.Clock,
		every:     cmp.Or(o.Housekeeping, 100*time.Millisecond),
		swept:     o.Swept,
		common:    common{seed: maphash.MakeSeed(), newTable: o.newTable},
	}
	if ks.newTable == nil {
		ks.arena = dense.NewArena()
		ks.newTable = func(m *dense.Memory, hash func(key []byte) uint32) table { return dense.New(ks.arena, m, hash) }
	}
	n := cmp.Or(o.Shards, defaultShards)
	if bits.OnesCount(uint(n)) != 1 || n > maxShards {
		panic("keyspace: the number of shards is a power of two up to 256")
	}
	ks.shift = 64 - bits.TrailingZeros(uint(n))
	ks.shards = make([]shard, n)
	for i := range ks.shards {
		s := &ks.shards[i]
		s.common, s.last = &ks.common, ks.clock.Now()
		s.dbs = make([]database, System+1)
		s.seen = make([]atomic.Pointer[dense.Table], len(s.dbs))
	}
	ks.mem.max.Store(o.MaxMemory)
	ks.removable.Store(int64(limit.MaxInstant))
	ks.SetMaxElements(cmp.Or(o.MaxElements, DefaultMaxElements))
	ks.sweeper.handle, ks.applier.handle = ks.NewHandle(), ks.NewHandle()
	return ks
}

// Databases is how many databases there are for clients.
func (ks *Keyspace) Databases() int { return ks.databases }

// Clock is the clock that the keyspace was made with.
func (ks *Keyspace) Clock() clock.Clock { return ks.clock }

// World is what stops all handles but one.
func (ks *Keyspace) World() *world.Lock { return &ks.world }

// Alone stops the world, runs f and starts the world again. It waits until all batches have
// ended, and for whoever has stopped the world before. The caller must not be inside a batch.
func (ks *Keyspace) Alone(f func()) {
	for !ks.world.Stop(nil) {
		started := make(chan struct{})
		ks.world.NotifyStart(func() { close(started) })
		<-started
	}
	defer ks.world.Start()
	f()
}

// ResetInstants makes at the latest instant of every shard, also where it was later, and
// has all handles read the clock anew. It is called inside [Keyspace.Alone], once the clock
// has been set: afterwards nothing happens at an instant of the clock as it was before.
func (ks *Keyspace) ResetInstants(at limit.Instant) {
	ks.epoch.Add(1)
	for i := range ks.shards {
		s := &ks.shards[i]
		s.mu.Lock()
		s.last = at
		s.mu.Unlock()
	}
}

// SetMaxMemory changes [Options.MaxMemory].
func (ks *Keyspace) SetMaxMemory(n int64) { ks.mem.max.Store(n) }

// SetBeside says how many bytes are taken beside the keys, by what waits to be sent
// to clients. They count against the bound.
func (ks *Keyspace) SetBeside(n int64) { ks.mem.beside.Store(n) }

// Outside is how many bytes tables have taken outside of Go's heap: see
// [dense.Arena.Outside].
func (ks *Keyspace) Outside() int64 {
	if ks.arena == nil {
		return 0
	}
	return ks.arena.Outside()
}

// InHeap is how many of the bytes that keys take are in Go's heap.
func (ks *Keyspace) InHeap() int64 {
	if ks.arena == nil || !ks.arena.Mapped() {
		return ks.mem.Used()
	}
	return ks.mem.Objects()
}

// DefaultMaxElements is the most elements of a collection where nobody says more.
const DefaultMaxElements = 100_000

// SetMaxElements changes [Options.MaxElements]. Larger collections stay what they
// are, but get no further element.
func (ks *Keyspace) SetMaxElements(n int) { ks.most.Store(int64(n)) }

// Ledger is what the values of [Handle.AppendString] and of collections are counted by
// while replies refer to them.
func (ks *Keyspace) Ledger() shared.Ledger { return &ks.mem.Memory }

// Close gives the memory of all tables back. No handle may be used afterwards.
func (ks *Keyspace) Close() {
	for db := range ks.shards[0].dbs {
		ks.dropAll(db)
	}
	if ks.arena != nil {
		ks.arena.Close()
	}
}

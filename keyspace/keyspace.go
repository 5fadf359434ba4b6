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

// Options configure a [Keyspace]. All fields but Clock may be zero; then they have their defaults.
type Options struct {
	// Databases is the number of databases for clients, from 1 to 16; 16 by default.
	Databases int
	// Shards is the number of shards, each of which has its own lock. It must be a power of two of
	// at most 256; the default is 64.
	Shards int
	// Clock is the source of all instants. It must be set.
	Clock clock.Clock
	// MaxMemory is the number of bytes of memory at which new keys are refused; 0 means no bound.
	// [Keyspace.SetMaxMemory] changes it.
	MaxMemory int64
	// MaxElements is the maximum number of elements of a collection: [DefaultMaxElements] by
	// default. [Keyspace.SetMaxElements] changes it.
	MaxElements int
	// Housekeeping is the interval at which [Keyspace.Run] samples the clock and sweeps: 100 ms by
	// default. It is also the longest time for which a suspension of the machine may stay
	// unnoticed.
	Housekeeping time.Duration

	// Swept, if not nil, is called at the end of each [Keyspace.Sweep] that was not suspended.
	// longest is the longest time for which the sweep locked one shard, and all is the sum of the
	// times for which it locked shards.
	Swept func(longest, all time.Duration)

	newTable newTable // the function that makes tables, if a test supplies one; otherwise nil
}

// defaultShards is the default of Options.Shards.
const defaultShards = 64

// New returns an empty keyspace with the options o. It panics if the number of shards is not a
// power of two of at most 256. [Keyspace.Close] frees its memory.
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

// Databases returns the number of databases for clients.
func (ks *Keyspace) Databases() int { return ks.databases }

// Clock returns the clock of the keyspace.
func (ks *Keyspace) Clock() clock.Clock { return ks.clock }

// World returns the lock that stops the batches of all handles but one: see [world.Lock].
func (ks *Keyspace) World() *world.Lock { return &ks.world }

// Exclusively stops the world, calls f and starts the world again, even if f panics. If another
// goroutine has stopped the world, Exclusively first waits until that goroutine starts it; then it
// waits until all batches have ended. The caller must not be inside a batch.
func (ks *Keyspace) Exclusively(f func()) {
	for !ks.world.Stop(nil) {
		started := make(chan struct{})
		ks.world.NotifyStart(func() { close(started) })
		<-started
	}
	defer ks.world.Start()
	f()
}

// ResetInstants sets the latest instant of every shard to at, even if the shard was at a later
// instant, and makes all handles read the clock anew. It must be called inside
// [Keyspace.Exclusively], after the clock has been set. From then on nothing happens at an instant
// that was read before the clock was set.
func (ks *Keyspace) ResetInstants(at limit.Instant) {
	ks.epoch.Add(1)
	for i := range ks.shards {
		s := &ks.shards[i]
		s.mu.Lock()
		s.last = at
		s.mu.Unlock()
	}
}

// SetMaxMemory changes [Options.MaxMemory] to n bytes; 0 means no bound.
func (ks *Keyspace) SetMaxMemory(n int64) { ks.mem.max.Store(n) }

// SetBeside sets to n the number of bytes of output that waits to be sent to clients. These bytes
// count against the bound of memory, as the bytes of keys do.
func (ks *Keyspace) SetBeside(n int64) { ks.mem.beside.Store(n) }

// Outside returns the number of bytes that tables have taken outside of Go's heap, or 0 if a test
// has supplied the tables: see [dense.Arena.Outside].
func (ks *Keyspace) Outside() int64 {
	if ks.arena == nil {
		return 0
	}
	return ks.arena.Outside()
}

// InHeap returns the number of bytes that keys take in Go's heap.
func (ks *Keyspace) InHeap() int64 {
	if ks.arena == nil || !ks.arena.Mapped() {
		return ks.mem.Used()
	}
	return ks.mem.Objects()
}

// DefaultMaxElements is the default of [Options.MaxElements].
const DefaultMaxElements = 100_000

// SetMaxElements changes [Options.MaxElements] to n. A collection that has more than n elements
// keeps them but gets no further element.
func (ks *Keyspace) SetMaxElements(n int) { ks.most.Store(int64(n)) }

// Ledger returns the ledger that counts the memory of stored values for as long as replies refer to
// them: values that [Handle.AppendString] has returned, and elements of collections.
func (ks *Keyspace) Ledger() shared.Ledger { return &ks.mem.Memory }

// Close frees the memory of all tables. Neither the keyspace nor a handle may be used afterwards.
func (ks *Keyspace) Close() {
	for db := range ks.shards[0].dbs {
		ks.dropAll(db)
	}
	if ks.arena != nil {
		ks.arena.Close()
	}
}

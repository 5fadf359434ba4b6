package keyspace

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/shared"
)

// memory is the bytes that all tables of a keyspace take, and what they may.
type memory struct {
	dense.Memory
	beside atomic.Int64 // of the clients, by [Keyspace.SetBeside]
	max    atomic.Int64 // 0: no bound
}

// common is what all shards of a keyspace have in common.
type common struct {
	seed     maphash.Seed
	newTable newTable
	mem      memory
	claim    claim
	// objects are collections that patches are applied in.
	objects [object.Kinds]sync.Pool
	holes   holes
}

// hash is seeded per process, so that no client can know which keys collide. The
// upper bits choose the shard, the lower 32 the place in a table.
func (c *common) hash(key []byte) uint64 { return maphash.Bytes(c.seed, key) }

func (c *common) tableHash(key []byte) uint32 { return uint32(c.hash(key)) }

// Ledger is what the values of [View.AppendString] and of collections are counted by
// while replies refer to them.
func (ks *Keyspace) Ledger() shared.Ledger { return &ks.mem.Memory }

// overdraft is how far beyond the bound what has begun may go on: twice what a
// transaction can queue.
const overdraft = 32 << 20

// Full reports whether memory is at its maximum, so that new keys are refused.
func (v *View) Full() bool { return v.full() }

// Lacks reports whether n bytes more would bring memory to its maximum. Who makes much of
// a short command asks before; the others are refused once it is full.
func (v *View) Lacks(n int64) bool { return v.ks.mem.full(v.slack - n) }

// Begin says that what is held has begun and is to come to its end: until Release it is
// refused nothing for want of memory, unless it goes far beyond the bound. Whoever calls
// it has found before that memory is not full, or that what is to come needs none.
func (v *View) Begin() {
	if v.holding {
		v.slack = overdraft
	}
}

func (v *View) full() bool { return v.ks.mem.full(v.slack) }

// full reports whether a new key has to be refused, for somebody who may go that far
// beyond the bound. Keys that exist are updated all the same: it takes no memory, or
// little.
func (m *memory) full(slack int64) bool {
	most := m.max.Load()
	return most != 0 && m.Used()+m.beside.Load() >= most+slack
}

package keyspace

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/object"
)

// memory is the bytes that all tables of a keyspace take, and what they may.
type memory struct {
	dense.Memory
	beside atomic.Int64 // of the clients, by [Keyspace.SetBeside]
	max    atomic.Int64 // 0: no bound
}

// full reports whether a new key has to be refused, for somebody who may go that far
// beyond the bound. Keys that exist are updated all the same: it takes no memory, or
// little.
func (m *memory) full(slack int64) bool {
	most := m.max.Load()
	return most != 0 && m.Used()+m.beside.Load() >= most+slack
}

// common is what all shards of a keyspace have in common.
type common struct {
	seed     maphash.Seed
	newTable newTable
	mem      memory
	claim    claim
	// removable is the instant that nothing is removed for having expired after: see
	// [Keyspace.SweepTo].
	removable atomic.Int64
	// objects are collections that patches are applied in.
	objects [object.Kinds]sync.Pool
	holes   holes
	system  func(key []byte, e entry.Entry) // see [Keyspace.ObserveSystem]
}

// hash is seeded per process, so that no client can know which keys collide. The
// upper bits choose the shard, the lower 32 the place in a table.
func (c *common) hash(key []byte) uint64 { return maphash.Bytes(c.seed, key) }

func (c *common) tableHash(key []byte) uint32 { return uint32(c.hash(key)) }

// holes are the lists that a patch has left with positions that have no value. While
// effects are replayed over a newer base that is as it should be, for what follows
// gives the values, removes the list or finds it expired.
type holes struct {
	mu    sync.Mutex
	names map[keyName]struct{} // guarded by mu
}

// note remembers the list o, which has just been patched, if it has holes.
func (h *holes) note(db int, key []byte, o object.Object) {
	l, ok := o.(*collection.List)
	if !ok || l.Whole() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.names == nil {
		h.names = make(map[keyName]struct{})
	}
	h.names[keyName{db, string(key)}] = struct{}{}
}

// maxScratch is the largest buffer for new values that a handle keeps.
const maxScratch = 64 << 10

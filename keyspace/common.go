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

// memory counts the bytes that all tables of a keyspace take, and has the bound of memory.
type memory struct {
	dense.Memory
	beside atomic.Int64 // bytes of output that waits for clients, set by [Keyspace.SetBeside]
	max    atomic.Int64 // maximum of Used plus beside, in bytes; 0 means no maximum
}

// full reports whether a new key has to be refused. slack is the number of bytes by which the
// caller may exceed the bound. Existing keys are updated even when memory is full, since an update
// takes little memory or none.
func (m *memory) full(slack int64) bool {
	most := m.max.Load()
	return most != 0 && m.Used()+m.beside.Load() >= most+slack
}

// common has the state that all shards of a keyspace share.
type common struct {
	seed     maphash.Seed
	newTable newTable
	mem      memory
	claim    claim
	// removable is the latest expiry with which an expired key may be removed: see
	// [Keyspace.SweepTo].
	removable atomic.Int64
	// objects has, for each kind of collection, a pool of the objects to which patches are applied.
	objects [object.Kinds]sync.Pool
	holes   holes
	system  func(key []byte, e entry.Entry) // function that is told about changes of the database System: see [Keyspace.ObserveSystem]
}

// hash returns the 64-bit hash of key. The seed is random in each process, so that clients cannot
// find keys that collide. The upper bits choose the shard, and the lower 32 bits the slot in a
// table.
func (c *common) hash(key []byte) uint64 { return maphash.Bytes(c.seed, key) }

func (c *common) tableHash(key []byte) uint32 { return uint32(c.hash(key)) }

// holes has the names of the lists in which a patch has left positions without a value. Such
// positions are expected while effects are replayed over a newer snapshot: later effects supply the
// values or remove the list, or the list has expired.
type holes struct {
	mu    sync.Mutex
	names map[keyName]struct{} // the lists with such positions; guarded by mu
}

// note remembers the key of o, to which a patch has just been applied, if o is a list that lacks
// values.
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

// maxScratch is the maximum capacity in bytes of a buffer that a handle keeps for new values.
const maxScratch = 256 << 10

package cluster

import (
	"hash/maphash"
	"sync"

	"github.com/cellserver/cellserver/decide"
)

const (
	shardCount = 128
	// mostIdle is how many keys without anything to do are remembered in all, and
	// mostIdleBytes how many bytes of values they may have.
	mostIdle      = 64 << 10
	mostIdleBytes = 64 << 20
)

// key is a key that has something to do, or of which something is remembered. All of it is
// guarded by the lock of its shard.
type key struct {
	name  string // as the caller says it
	full  []byte // as the engine has it
	shard *shard
	place
	// busy says that an exchange is under way, or that a group holds the key: what comes
	// waits in the queue.
	busy   bool
	memory memory
	leasing

	newer, older *key // of the idle keys of the shard
	bytes        int  // of an idle key
}

// shard is some of the keys.
type shard struct {
	mu   sync.Mutex
	keys map[string]*key
	// The idle keys, in the order in which they became idle.
	newest, oldest *key
	idle, bytes    int
	scratch        scratch
}

// table is all keys that are known.
type table struct {
	prefix string
	// leased reports whether the operator wants leases for a key; nil for none.
	leased func(name []byte) bool
	seed   maphash.Seed
	shards [shardCount]shard
}

func (t *table) open(prefix string) {
	t.prefix, t.seed = prefix, maphash.MakeSeed()
	for i := range t.shards {
		t.shards[i].keys = map[string]*key{}
	}
}

// number returns which shard a key is in.
func (t *table) number(name []byte) int {
	return int(maphash.Bytes(t.seed, name) % shardCount)
}

// find returns the key of that name. The lock of its shard is held.
func (t *table) find(s *shard, name []byte) *key {
	k := s.keys[string(name)]
	if k == nil {
		k = &key{name: string(name), shard: s, place: place{mu: &s.mu}}
		k.full = append(append(make([]byte, 0, len(t.prefix)+len(name)), t.prefix...), name...)
		k.may = t.leased != nil && t.leased(name)
		s.keys[k.name] = k
		return k
	}
	if !k.busy {
		s.unlink(k)
	}
	return k
}

// rest says that the key has nothing to do any more.
func (s *shard) rest(k *key) {
	k.busy = false
	if k.memory.idle() && k.lease == nil {
		delete(s.keys, k.name)
		return
	}
	k.bytes = len(k.name) + len(k.full) + len(k.memory.value.raw)
	k.older = s.newest
	if s.newest != nil {
		s.newest.newer = k
	} else {
		s.oldest = k
	}
	s.newest = k
	s.idle++
	s.bytes += k.bytes
	for s.idle > mostIdle/shardCount || s.bytes > mostIdleBytes/shardCount {
		last := s.oldest
		last.lease = nil
		s.unlink(last)
		delete(s.keys, last.name)
	}
}

// noteGone has the lease of a key go with it, if v, which the engine has now, is no key. What
// was paid for was of another.
func (k *key) noteGone(v *value) {
	if v.raw == nil && k.lease != nil {
		k.lease.pause(0, 0)
	}
}

// forget drops what is remembered of all keys.
func (t *table) forget() {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, k := range s.keys {
			k.memory.known, k.memory.value, k.memory.denial = false, value{}, nil
			k.noteGone(&k.memory.value)
		}
		s.mu.Unlock()
	}
}

// unlink takes a key out of the idle ones.
func (s *shard) unlink(k *key) {
	if k.newer != nil {
		k.newer.older = k.older
	} else {
		s.newest = k.older
	}
	if k.older != nil {
		k.older.newer = k.newer
	} else {
		s.oldest = k.newer
	}
	k.newer, k.older = nil, nil
	s.idle--
	s.bytes -= k.bytes
}

// scratch is room in which one exchange at a time decides.
type scratch struct {
	plan decide.Plan
	// mine is what the value under way lies in, if it is not the engine's any more, and
	// spare the room for the next.
	mine, spare []byte
}

// mostScratch is the most bytes that a scratch keeps of each.
const mostScratch = 64 << 10

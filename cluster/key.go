package cluster

import (
	"hash/maphash"
	"sync"

	"github.com/cellserver/cellserver/decide"
)

const (
	shardCount = 128
	// mostIdle is the maximum number of idle keys that are remembered in all, and mostIdleBytes
	// that of the bytes of their values.
	mostIdle      = 64 << 10
	mostIdleBytes = 64 << 20
)

// key is a key with waiting asks, or of which something is remembered. The lock of its shard guards
// it.
type key struct {
	name  string // as callers name it
	full  []byte // as stored in the engine
	shard *shard
	place
	// busy says that an exchange is running, or that a group holds the key: further asks wait in
	// the queue.
	busy   bool
	memory memory
	leasing

	newer, older *key // neighbours among the idle keys of the shard
	bytes        int  // size of an idle key
}

// shard is a part of the keys.
type shard struct {
	mu   sync.Mutex
	keys map[string]*key
	// The idle keys, in the order in which they became idle.
	newest, oldest *key
	idle, bytes    int
	scratch        scratch
}

// table has all known keys.
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

// number returns the index of the shard of a key.
func (t *table) number(name []byte) int {
	return int(maphash.Bytes(t.seed, name) % shardCount)
}

// find returns the key of that name. The lock of its shard must be held.
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

// rest marks the key as idle.
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

// noteGone ends the lease of a key if v, the present value in the engine, is absent: the units of
// the lease were paid for from the old value.
func (k *key) noteGone(v *value) {
	if v.raw == nil && k.lease != nil {
		k.lease.pause(0, 0)
	}
}

// forget discards what is remembered of all keys.
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

// unlink removes a key from the idle keys.
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

// scratch is memory for decisions, which one exchange at a time uses.
type scratch struct {
	plan decide.Plan
	// mine is the memory of the present value if it is no longer the engine's, and spare that for
	// the next value.
	mine, spare []byte
}

// mostScratch is the capacity of the largest buffer that a scratch keeps.
const mostScratch = 64 << 10

package remote

import (
	"hash/maphash"
	"sync"

	"github.com/cellserver/cellserver/decide"
)

const (
	shardCount = 128
	// mostIdle is the maximum number of idle keys that are remembered in all shards together.
	// mostIdleBytes is the maximum number of bytes of their names and values. Each shard has an
	// equal part of both.
	mostIdle      = 64 << 10
	mostIdleBytes = 64 << 20
)

// key is a key that has waiting asks, or about which something is remembered. The lock of its shard
// guards it.
type key struct {
	name  string // the name by which callers know the key
	full  []byte // the name in the engine, including the prefix
	shard *shard
	place
	// busy says that an exchange is running, or that a group has its turn at the key. Further
	// asks wait in the queue.
	busy   bool
	memory memory
	leasing

	newer, older *key // the neighbours in the list of the idle keys of the shard
	bytes        int  // number of bytes that the key counts for while it is idle: see rest
}

// shard has a part of the keys. mu guards it.
type shard struct {
	mu   sync.Mutex
	keys map[string]*key
	// The idle keys form a list, in the order in which they became idle. idle is their number,
	// and bytes the sum of their sizes.
	newest, oldest *key
	idle, bytes    int
	scratch        scratch
}

// table has all known keys, distributed over shards.
type table struct {
	prefix string
	// leased reports whether the operator wants leases for a key while it is hot; nil means for
	// no key.
	leased func(name []byte) bool
	seed   maphash.Seed
	shards [shardCount]shard
}

// open makes the table ready for use. prefix is put before each name to form the key in the
// engine.
func (t *table) open(prefix string) {
	t.prefix, t.seed = prefix, maphash.MakeSeed()
	for i := range t.shards {
		t.shards[i].keys = map[string]*key{}
	}
}

// number returns the index of the shard of the key called name.
func (t *table) number(name []byte) int {
	return int(maphash.Bytes(t.seed, name) % shardCount)
}

// find returns the key called name, and creates it if it is not known. It removes an idle key
// from the list of idle keys. The caller must hold the lock of s, the shard of the key.
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

// rest marks k as idle, or forgets it if there is nothing to remember. If the shard then has too
// many idle keys, or too many bytes of them, the ones that became idle first are forgotten. The
// lock of the shard must be held.
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

// noteGone ends the lease of k if v, the present value in the engine, is absent: the units of the
// lease were charged to the old value.
func (k *key) noteGone(v *value) {
	if v.raw == nil && k.lease != nil {
		k.lease.pause(0, 0)
	}
}

// forget discards the remembered values and refusals of all keys, and ends their leases. It is
// called after the engine was flushed.
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

// unlink removes k from the list of idle keys.
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

// scratch is memory for decisions, which the exchanges of a shard use one at a time, with the lock
// of the shard.
type scratch struct {
	plan  decide.Plan
	parts decide.Parts // memory for deciding a joint ask
	// mine is the buffer with the Value of the entry after an ask has changed it. spare is the
	// buffer for the next Value.
	mine, spare []byte
}

// mostScratch is the maximum capacity in bytes of a buffer that a scratch keeps between
// decisions.
const mostScratch = 64 << 10

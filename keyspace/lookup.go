package keyspace

import (
	"unsafe"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/dense"
)

// Prefetch loads the memory of the keys of database db, so that the next commands find it in the
// processor's caches. The lookup of one key waits for two loads that depend on each other; in
// Prefetch the loads of many keys overlap. The bytes of keys must not change until [Handle.Leave].
//
// Prefetch takes no lock. So what it reads may be stale or torn and is only a hint: see
// [dense.Load].
func (v *Handle) Prefetch(db int, keys [][]byte) {
	for len(keys) > maxPrefetch {
		v.load(db, keys[:maxPrefetch], nil)
		keys = keys[maxPrefetch:]
	}
	v.load(db, keys, nil)
}

// hash returns the hash of key. If key is the next of the keys given to Prefetch, hash returns the
// hash that Prefetch has computed, and advances to the key after it.
func (v *Handle) hash(key []byte) uint64 {
	if k := &v.known; k.next < k.n {
		if a := &k.keys[k.next]; a.at == unsafe.SliceData(key) && a.size == len(key) {
			h := k.probes[k.next].Hash
			k.next++
			return h
		}
	}
	return v.ks.hash(key)
}

// find does what [shard.find] does. If Prefetch has found the number of the key's record, and the
// record with that number has the key, find uses this record and does not search.
func (v *Handle) find(s *shard, p *place, db int, h uint64, key []byte) {
	if k := &v.known.probes[uint(v.known.next-1)%maxPrefetch]; k.Hash == h && v.known.n > 0 && v.known.db == db {
		if t, _ := s.dbs[db].t.(*dense.Table); t != nil {
			if r, kind, at, value, ok := t.Confirm(k, key); ok {
				p.db, p.hash = db, uint32(h)
				p.fill(s, r, kind, at, value)
				if p.e.Kind == entry.None && s.by != nil && p.stale() {
					s.by.noteExpired(db, h, key)
				}
				return
			}
		}
	}
	s.find(p, db, h, key)
}

// load does what Prefetch does, for at most maxPrefetch keys, and notes the keys in v.known. hashes
// has the hashes of the keys; if hashes is nil, load computes them.
func (v *Handle) load(db int, keys [][]byte, hashes []uint64) {
	k := &v.known
	k.next, k.n, k.db = 0, len(keys), db
	for i, key := range keys {
		var h uint64
		if hashes == nil {
			h = v.ks.hash(key)
		} else {
			h = hashes[i]
		}
		k.keys[i] = knownKey{at: unsafe.SliceData(key), size: len(key)}
		k.probes[i] = dense.Probe{Hash: h, Table: v.ks.shards[h>>v.ks.shift].seen[db].Load()}
	}
	dense.Load(k.probes[:len(keys)])
}

// maxSpots is the maximum number of spots, of 16 bytes each, for which a handle keeps memory. Only
// a few handles run commands with many keys.
const maxSpots = 64 << 10

// spread hashes n keys, the i-th of which key(i) returns. It returns their spots, sorted by shard
// and by index within a shard, and the set of their shards. It is called before the locks are
// taken, to keep the time under the locks short. spots is valid until the next call of spread or
// inOrder.
func (v *Handle) spread(n int, key func(i int) []byte) (spots []spot, set shardSet) {
	room := v.room(2 * n)
	came, spots := room[:n], room[n:]
	var begin [maxShards + 1]int32
	for i := range came {
		h := v.ks.hash(key(i))
		came[i] = spot{h, int32(i)}
		begin[h>>v.ks.shift+1]++
	}
	for i := range v.ks.shards {
		if begin[i+1] > 0 {
			set.add(i)
		}
		begin[i+1] += begin[i]
	}
	for _, p := range came {
		at := &begin[p.hash>>v.ks.shift]
		spots[*at] = p
		*at++
	}
	return spots, set
}

// inOrder hashes n keys, the i-th of which key(i) returns. It returns their spots in the order of
// i, and the set of their shards. spots is valid until the next call of spread or inOrder.
func (v *Handle) inOrder(n int, key func(i int) []byte) (spots []spot, set shardSet) {
	spots = v.room(n)
	for i := range spots {
		h := v.ks.hash(key(i))
		spots[i] = spot{h, int32(i)}
		set.add(int(h >> v.ks.shift))
	}
	return spots, set
}

// room returns n spots with undefined contents. If n is at most maxSpots, their memory belongs to
// the handle, which returns the same memory from the next call.
func (v *Handle) room(n int) []spot {
	if n > maxSpots {
		return make([]spot, n)
	}
	if cap(v.spots) < n {
		v.spots = make([]spot, n, min(2*n, maxSpots))
	}
	return v.spots[:n]
}

// visit calls f for the keys of spots, one after another, until f returns false. f gets the index,
// the locked shard and the place of the key; key(i) is the key with index i. The caller has claimed
// the keys or locked their shards. A change of one key may move the entries of others, so visit
// looks up each key just before the call of f, in memory that was prefetched some keys ahead.
func (v *Handle) visit(db int, spots []spot, key func(i int) []byte, f func(i int, s *shard, p *place) bool) {
	var ahead [maxPrefetch][]byte
	var hashes [maxPrefetch]uint64
	for len(spots) > 0 {
		n := min(len(spots), maxPrefetch)
		for j, p := range spots[:n] {
			ahead[j], hashes[j] = key(int(p.at)), p.hash
		}
		v.load(db, ahead[:n], hashes[:n])
		for j, is := range spots[:n] {
			s := v.visited(is.hash)
			v.found, v.known.next = place{}, j+1
			v.find(s, &v.found, db, is.hash, ahead[j])
			if !f(int(is.at), s, &v.found) {
				spots = spots[:n] // ends the outer loop too
				break
			}
		}
		v.leave()
		spots = spots[n:]
	}
	v.known.n = 0
}

// visited returns the locked shard of the keys with hash h for visit. It enters the shard if the
// keys are claimed.
func (v *Handle) visited(h uint64) *shard {
	if v.claimed.any {
		return v.enter(h)
	}
	return v.lock(h)
}

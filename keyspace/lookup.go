package keyspace

import (
	"unsafe"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/dense"
)

// Prefetch loads the memory of keys of db, so that the next commands find it in the processor's
// caches. The lookup of one key waits for two loads that depend on each other; here the loads of
// many keys overlap. The bytes of keys must not change until [Handle.Leave].
//
// It takes no lock, so what it reads may be stale or torn and is only a hint: see [dense.Load].
func (v *Handle) Prefetch(db int, keys [][]byte) {
	for len(keys) > maxPrefetch {
		v.load(db, keys[:maxPrefetch], nil)
		keys = keys[maxPrefetch:]
	}
	v.load(db, keys, nil)
}

// hash returns the hash of key, which Prefetch may have computed already.
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

// find is [shard.find] without the search where Prefetch has found the record: a record of that
// number which has the key is the right one.
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

// load is Prefetch for at most maxPrefetch keys. hashes are the hashes of the keys; if it is nil,
// load computes them.
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

// maxSpots is the largest number of spots, of 16 bytes each, for which a handle keeps memory.
// Commands with many keys run on a few handles only.
const maxSpots = 64 << 10

// spread hashes n keys and returns their spots, sorted by shard and by index within a shard, and
// the set of these shards. It is called before any lock is held, to keep the time under the locks
// short. The result is valid until the next call.
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

// inOrder is spread for keys that are to be visited in the order of their indices.
func (v *Handle) inOrder(n int, key func(i int) []byte) (spots []spot, set shardSet) {
	spots = v.room(n)
	for i := range spots {
		h := v.ks.hash(key(i))
		spots[i] = spot{h, int32(i)}
		set.add(int(h >> v.ks.shift))
	}
	return spots, set
}

// room returns n spots, in memory that the handle reuses if n is not large.
func (v *Handle) room(n int) []spot {
	if n > maxSpots {
		return make([]spot, n)
	}
	if cap(v.spots) < n {
		v.spots = make([]spot, n, min(2*n, maxSpots))
	}
	return v.spots[:n]
}

// visit calls f with the place of one key of spots after another, until f returns false. The keys
// are claimed or their shards locked. What f does to one key may move others, so each key is looked
// up just before its call, in memory that was prefetched some keys ahead.
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
				spots = spots[:n] // end the outer loop
				break
			}
		}
		v.leave()
		spots = spots[n:]
	}
	v.known.n = 0
}

// visited locks the shard of a key that is visited.
func (v *Handle) visited(h uint64) *shard {
	if v.claimed.any {
		return v.enter(h)
	}
	return v.lock(h)
}

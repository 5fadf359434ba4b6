package keyspace

import (
	"unsafe"

	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/entry"
)

// Prefetch loads the memory that the keys of db lie in, so that what is done with
// them next finds it in the processor's caches. Looking up one key waits for two
// loads that depend on each other; here those of many keys wait together. The keys
// must stay what they are until [View.Leave].
//
// It takes no lock, so it believes nothing of what it sees: see [dense.Load].
func (v *View) Prefetch(db int, keys [][]byte) {
	for len(keys) > maxPrefetch {
		v.load(db, keys[:maxPrefetch], nil)
		keys = keys[maxPrefetch:]
	}
	v.load(db, keys, nil)
}

// maxPrefetch is how many keys are loaded together.
const maxPrefetch = dense.MostProbes

// known are the keys of the last Prefetch, in the order in which they were given,
// which is that in which they are used.
type known struct {
	next, n int
	db      int
	keys    [maxPrefetch]knownKey
	probes  [maxPrefetch]dense.Probe
}

// knownKey tells a key by the memory that it lies in.
type knownKey struct {
	at   *byte
	size int
}

// hash returns the hash of key, which Prefetch may have worked out already.
func (v *View) hash(key []byte) uint64 {
	if k := &v.known; k.next < k.n {
		if a := &k.keys[k.next]; a.at == unsafe.SliceData(key) && a.size == len(key) {
			h := k.probes[k.next].Hash
			k.next++
			return h
		}
	}
	return v.ks.hash(key)
}

// find is [shard.find], which it spares where Prefetch has found the record: if there
// is a record of that number in the table, and it has the key, then it is the one.
func (v *View) find(s *shard, p *place, db int, h uint64, key []byte) {
	if k := &v.known.probes[uint(v.known.next-1)%maxPrefetch]; k.Hash == h && v.known.n > 0 && v.known.db == db {
		if t, _ := s.dbs[db].t.(*dense.Table); t != nil {
			if r, kind, at, value, ok := t.Confirm(k, key); ok {
				p.db, p.hash = db, uint32(h)
				p.fill(s, r, kind, at, value)
				if p.e.Kind == entry.None && s.by != nil && p.stale() {
					s.by.saw(db, h, key)
				}
				return
			}
		}
	}
	s.find(p, db, h, key)
}

// load is Prefetch for maxPrefetch keys at most. hashes are theirs, nil if they have to
// be worked out.
func (v *View) load(db int, keys [][]byte, hashes []uint64) {
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

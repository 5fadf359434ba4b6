package keyspace

import (
	"math/rand/v2"
	"time"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// DatabaseStats has the counts of one database. Keys is the number of keys, including expired keys
// that have not been removed yet.
type DatabaseStats struct {
	Keys    int
	Expires int // number of keys that have an expiry
	// AvgTTL is the mean time to live of the keys with an expiry, estimated from a sample; 0 if the
	// sample has no such key.
	AvgTTL time.Duration
}

// Stats has the counts of a keyspace. Shards are counted one after another, so that under load
// their counts are of slightly different instants.
type Stats struct {
	Databases []DatabaseStats
	// System is the number of keys in the database [System].
	System int
	// Kinds is the number of keys of each kind in the databases for clients, indexed by the kind.
	Kinds [entry.Kinds]int
	// Expired is the number of expired keys that were removed or overwritten since the start.
	Expired int64
	// Memory is the number of bytes that keys take. InHeap is the part of Memory that is in Go's
	// heap. MaxMemory is the bound of memory in bytes; 0 means no bound.
	Memory    int64
	InHeap    int64
	MaxMemory int64
}

// ttlSamples is the number of keys that are drawn from each shard and database for the sample of
// AvgTTL.
const ttlSamples = 4

// Stats returns the present counts. It locks one shard after another, so a goroutine whose handle
// holds keys must call [Handle.Stats] instead.
func (ks *Keyspace) Stats() Stats {
	return ks.stats(func(s *shard) { s.mu.Lock() }, func(s *shard) { s.mu.Unlock() })
}

// Stats returns what [Keyspace.Stats] returns. The handle must hold all keys (see [Handle.LockAll])
// or none.
func (v *Handle) Stats() Stats {
	if v.holding {
		return v.ks.stats(func(*shard) {}, func(*shard) {})
	}
	return v.ks.Stats()
}

// stats returns the present counts. It calls lock before it reads a shard, and unlock afterwards.
func (ks *Keyspace) stats(lock, unlock func(*shard)) Stats {
	st := Stats{
		Databases: make([]DatabaseStats, ks.Databases()),
		Memory:    ks.mem.Used(),
		InHeap:    ks.InHeap(),
		MaxMemory: ks.mem.max.Load(),
	}
	means := make([]mean, ks.Databases())
	for i := range ks.shards {
		s := &ks.shards[i]
		lock(s)
		st.Expired += s.expired
		if t := s.dbs[System].t; t != nil {
			st.System += t.Len()
		}
		for db := range means {
			if d := &s.dbs[db]; d.t != nil && d.t.Len() > 0 {
				st.Databases[db].Keys += d.t.Len()
				st.Databases[db].Expires += d.t.Len() - d.count.forever
				for k, n := range d.count.kinds {
					st.Kinds[k] += n
				}
				means[db].sample(d.t, s.last)
			}
		}
		unlock(s)
	}
	for db := range means {
		st.Databases[db].AvgTTL = means[db].value()
	}
	return st
}

// mean accumulates the mean of times to live: their sum in nanoseconds, and their number.
type mean struct {
	sum float64
	n   int
}

// sample draws ttlSamples keys of t and adds the times to live of those that have an expiry after
// now.
func (m *mean) sample(t table, now limit.Instant) {
	for range min(ttlSamples, t.Len()) {
		_, e := t.At(t.Random(rand.Uint64()))
		if e.Expiry != entry.NoExpiry && e.Expiry > now {
			m.sum += float64(e.Expiry.Sub(now))
			m.n++
		}
	}
}

// value returns the mean, or 0 if nothing was added.
func (m *mean) value() time.Duration {
	if m.n == 0 {
		return 0
	}
	return time.Duration(m.sum / float64(m.n))
}

// MemoryUsage returns the number of bytes that the entry of key takes, including its share of the
// table's own structure, and whether the key exists.
func (v *Handle) MemoryUsage(db int, key []byte) (int64, bool) {
	h := v.ks.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	s.find(&p, db, h, key)
	if p.e.Kind == entry.None {
		return 0, false
	}
	return s.costAt(db, p.r), true
}

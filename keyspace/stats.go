package keyspace

import (
	"math/rand/v2"
	"time"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// DatabaseStats are the counts of one database.
type DatabaseStats struct {
	Keys    int
	Expires int // keys that have an expiry
	// AvgTTL is the mean time to live of the keys with an expiry, from a sample.
	AvgTTL time.Duration
}

// Stats are the counts of a keyspace. Shards are counted one after another, so that under load
// their counts are of slightly different instants.
type Stats struct {
	Databases []DatabaseStats
	// System is the number of keys in the database [System].
	System int
	// Kinds is the number of keys of each kind, indexed by the kind.
	Kinds [entry.Kinds]int
	// Expired is the number of keys that were found expired since the start.
	Expired int64
	// Memory is the number of bytes that keys take, InHeap the part of it in Go's heap, and
	// MaxMemory the bound of Memory; 0 means no bound.
	Memory    int64
	InHeap    int64
	MaxMemory int64
}

// ttlSamples is the number of keys of each shard and database in the sample of AvgTTL.
const ttlSamples = 4

// Stats returns the present counts. For a handle that holds keys use [Handle.Stats], since this
// method locks the shards.
func (ks *Keyspace) Stats() Stats {
	return ks.stats(func(s *shard) { s.mu.Lock() }, func(s *shard) { s.mu.Unlock() })
}

// Stats is [Keyspace.Stats] for a handle, which may hold all keys or none.
func (v *Handle) Stats() Stats {
	if v.holding {
		return v.ks.stats(func(*shard) {}, func(*shard) {})
	}
	return v.ks.Stats()
}

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

// mean accumulates a mean of times to live.
type mean struct {
	sum float64
	n   int
}

func (m *mean) sample(t table, now limit.Instant) {
	for range min(ttlSamples, t.Len()) {
		_, e := t.At(t.Random(rand.Uint64()))
		if e.Expiry != entry.NoExpiry && e.Expiry > now {
			m.sum += float64(e.Expiry.Sub(now))
			m.n++
		}
	}
}

func (m *mean) value() time.Duration {
	if m.n == 0 {
		return 0
	}
	return time.Duration(m.sum / float64(m.n))
}

// MemoryUsage returns the number of bytes that key takes, including its share of the table's
// structure, and whether the key exists.
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

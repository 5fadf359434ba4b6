package keyspace

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/limit"
)

// shard is a part of the keyspace under one lock: mu guards all its fields. Padding by a cache line
// prevents false sharing between neighbouring shards.
type shard struct {
	mu sync.Mutex
	// last is the latest instant at which something happened here. It only decreases by
	// [Keyspace.ResetInstants], and while a claim is inside: see [Handle.enter].
	last limit.Instant
	dbs  []database
	// seen has the tables of dbs for [Handle.Prefetch], which reads without the lock.
	seen []atomic.Pointer[dense.Table]
	// watched and queues are nil while no key is watched or waited for. Testing that is all that a
	// command pays for them.
	watched map[keyName][]watchMark
	queues  map[keyName]*queue
	// pops has the waiters for elements, and is nil without any. Then server belongs to no handle;
	// otherwise it is that of the handle which has the lock.
	pops   map[keyName]*popQueue
	server *popServer
	// claimed says that some keys of the shard are claimed: see [claim].
	claimed bool
	expired int64 // number of keys found expired since the start
	sweepDB int   // database with which the next sweep continues
	scratch [8]byte
	*common
	// recorder is that of the handle which has the lock; nil without a journal.
	recorder *recorder
	// by is that of the handle which has the lock; nil before StartObserving and for code without a
	// handle.
	by *observed
	// slack is that of the handle which has the lock.
	slack int64
	// trees has the large collections by database; nil until there is one.
	trees []object.Trees

	_ [64]byte
}

// database is one shard's part of one database.
type database struct {
	t        table // nil until the first key
	count    *tally
	sweepPos uint64
}

// tally counts the keys of a table.
type tally struct {
	kinds   [entry.Kinds]int
	forever int // keys with NoExpiry
}

func (c *tally) add(k entry.Kind, expiry limit.Instant, n int) {
	c.kinds[k&(entry.Kinds-1)] += n // without treeBit
	if expiry == entry.NoExpiry {
		c.forever += n
	}
}

// place is where a key is stored or would be stored.
type place struct {
	db   int
	hash uint32
	r    dense.Ref
	// e is the entry of a live key, or of kind None.
	e entry.Entry
	// old is the kind of the entry in the table. It is not None for an expired entry that still
	// occupies the place; put overwrites that.
	old entry.Kind
	// oldExpiry is the expiry of that entry.
	oldExpiry limit.Instant
}

// find fills in the place of key, at the shard's latest instant.
func (s *shard) find(p *place, db int, h uint64, key []byte) {
	p.db, p.hash = db, uint32(h)
	t := s.dbs[db].t
	if t == nil {
		return
	}
	r, k, expiry, value := t.Find(uint32(h), key)
	p.fill(s, r, k, expiry, value)
	if p.e.Kind == entry.None && s.by != nil && p.stale() {
		s.by.noteExpired(db, h, key)
	}
}

// fill fills in the entry that the table of s has.
func (p *place) fill(s *shard, r dense.Ref, k entry.Kind, expiry limit.Instant, value []byte) {
	p.r, p.old, p.oldExpiry = r, k, expiry
	if expiry > s.last {
		p.e.Kind, p.e.Expiry, p.e.Value = k, expiry, value
	}
}

// get returns the entry of a live key, or an entry of kind None.
func (s *shard) get(db int, h uint64, key []byte) entry.Entry {
	var p place
	s.find(&p, db, h, key)
	return p.e
}

// stale reports whether an expired entry occupies the place.
func (p *place) stale() bool { return p.e.Kind == entry.None && p.old != entry.None }

// removes reports whether an entry with that expiry may be removed: it has expired, and
// [Keyspace.SweepTo] does not retain it.
func (s *shard) removes(expiry limit.Instant) bool { return expiry <= s.bound() }

// bound returns the latest expiry of entries that may be removed.
func (s *shard) bound() limit.Instant {
	return min(s.last, limit.Instant(s.removable.Load()))
}

// lockBare locks the shard for code without a handle, which records nothing.
func (s *shard) lockBare() {
	s.mu.Lock()
	s.bare()
}

// lockFree is lockBare once no key of hash h is claimed.
func (s *shard) lockFree(h uint64) {
	s.mu.Lock()
	if s.claimed {
		s.await(h)
	}
	s.bare()
}

// bare removes the state of the last handle from a locked shard.
func (s *shard) bare() { s.recorder, s.by, s.server, s.slack = nil, nil, nil, 0 }

// await waits until no key of hash h is claimed. The caller has locked the shard and nothing else;
// await unlocks the shard while it waits, and locks it again.
func (s *shard) await(h uint64) {
	c := &s.claim
	if !c.has(h) {
		return
	}
	s.mu.Unlock()
	c.one.RLock()
	s.mu.Lock()
	c.one.RUnlock()
}

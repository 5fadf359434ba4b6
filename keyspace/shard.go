package keyspace

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/limit"
)

// shard is a part of the keyspace under one lock. Everything in it is guarded by
// mu. A padding of a cache line keeps neighbours from slowing each other down.
type shard struct {
	mu sync.Mutex
	// last is the latest instant anything happened at here. Nothing ever happens
	// at an earlier one.
	last limit.Instant
	dbs  []database
	// seen are the tables of dbs for [Handle.Prefetch], which reads without the lock.
	seen []atomic.Pointer[dense.Table]
	// watched and queues are nil while nothing is watched or waited for, which is
	// the only test that a command pays for them.
	watched map[keyName][]watchMark
	queues  map[keyName]*queue
	// pops are those who wait for elements, likewise nil; server is of the handle that has the
	// lock while there are some.
	pops   map[keyName]*popQueue
	server *popServer
	// claimed says that some keys of the shard are: see claim.
	claimed bool
	expired int64 // keys found past their expiry since the start
	sweepDB int   // the database that the next sweep goes on with
	scratch [8]byte
	*common
	// recorder is that of the handle which has the lock; nil without a journal.
	recorder *recorder
	// by is of the handle that has the lock; nil before StartObserving and for who is no handle.
	by *observed
	// slack is that of the handle which has the lock.
	slack int64
	// trees are the large collections by database; nil while there has been none.
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

// place is where a key is or would be.
type place struct {
	db   int
	hash uint32
	r    dense.Ref
	// e is what a live key holds, or of kind None.
	e entry.Entry
	// old is the kind of what the table holds, which is not None for an entry that
	// has expired but still takes its place: store overwrites it.
	old entry.Kind
	// oldExpiry belongs to old.
	oldExpiry limit.Instant
}

// find fills in where key is at the shard's latest instant.
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

// fill puts down what the table of s holds.
func (p *place) fill(s *shard, r dense.Ref, k entry.Kind, expiry limit.Instant, value []byte) {
	p.r, p.old, p.oldExpiry = r, k, expiry
	if expiry > s.last {
		p.e.Kind, p.e.Expiry, p.e.Value = k, expiry, value
	}
}

// get returns what a live key holds, or an entry of kind None.
func (s *shard) get(db int, h uint64, key []byte) entry.Entry {
	var p place
	s.find(&p, db, h, key)
	return p.e
}

// stale reports whether the place is taken by an entry that has expired.
func (p *place) stale() bool { return p.e.Kind == entry.None && p.old != entry.None }

// removes reports whether what expires at that instant may be removed: it has expired, and
// [Keyspace.SweepTo] does not keep it.
func (s *shard) removes(expiry limit.Instant) bool { return expiry <= s.bound() }

// bound is the latest expiry of what may be removed.
func (s *shard) bound() limit.Instant {
	return min(s.last, limit.Instant(s.removable.Load()))
}

// lockBare locks the shard for somebody who is no handle and records nothing.
func (s *shard) lockBare() {
	s.mu.Lock()
	s.bare()
}

// lockFree is lockBare once nobody claims a key of that hash.
func (s *shard) lockFree(h uint64) {
	s.mu.Lock()
	if s.claimed {
		s.await(h)
	}
	s.bare()
}

// bare makes a shard that is locked forget the handle that had it before.
func (s *shard) bare() { s.recorder, s.by, s.server, s.slack = nil, nil, nil, 0 }

// await waits until nobody claims a key of that hash. The shard is locked, by somebody
// who has locked nothing else, and is so again.
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

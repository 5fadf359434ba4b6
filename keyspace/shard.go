package keyspace

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/keyspace/waiting"
	"github.com/cellserver/cellserver/limit"
)

// shard is a part of the keyspace under one lock. mu guards all fields except the fields of common.
// Padding by a cache line prevents false sharing between neighbouring shards.
type shard struct {
	mu sync.Mutex
	// last is the latest instant at which something happened in the shard. It decreases only in
	// [Keyspace.ResetInstants], and while a handle with a claim is inside the shard: see
	// [Handle.enter].
	last limit.Instant
	dbs  []database
	// seen has the tables of dbs for [Handle.Prefetch], which reads them without the lock.
	seen []atomic.Pointer[dense.Table]
	// watched has the watchers of each watched key; it is nil while no key is watched. room has the
	// waiters for room. Most commands only find that both are empty.
	watched map[keyName][]watchMark
	room    waiting.Room
	// pops has the waiters for elements. While there are any, server belongs to the handle that has
	// the lock, or is nil for code without a handle.
	pops   waiting.Elements
	server *waiting.Server
	// claimed is true while some keys of the shard are claimed: see [claim].
	claimed bool
	expired int64 // number of expired entries that were removed or overwritten since the start
	sweepDB int   // database in which the next sweep continues
	scratch [8]byte
	*common
	// recorder belongs to the handle that has the lock. It is nil without a journal and for code
	// without a handle.
	recorder *recorder
	// by belongs to the handle that has the lock. It is nil before StartObserving and for code
	// without a handle.
	by *observed
	// slack is the number of bytes by which the handle that has the lock may exceed the bound of
	// memory: see locks.
	slack int64
	// trees has the large collections, by database; it is nil until the shard has had one.
	trees []object.Trees

	_ [64]byte
}

// database has the keys of one database that belong to one shard.
type database struct {
	t        table  // the keys of the database; nil until the first key
	count    *tally // the counts of its entries; nil while t is nil
	sweepPos uint64 // position at which the sweep continues: see table.Due
}

// tally has the numbers of entries of a table: in all by kind, and those that never expire.
type tally struct {
	kinds   [entry.Kinds]int
	forever int // number of keys without an expiry
}

// add adds n, which may be negative, to the counts for an entry of kind k with the given expiry.
func (c *tally) add(k entry.Kind, expiry limit.Instant, n int) {
	c.kinds[k&(entry.Kinds-1)] += n // the mask removes treeBit from the kind
	if expiry == entry.NoExpiry {
		c.forever += n
	}
}

// place describes where a key is stored or would be stored in its shard.
type place struct {
	db   int
	hash uint32    // the lower half of the key's hash
	r    dense.Ref // reference to the entry in the table; valid unless old is None
	// e is the entry of the key. Its kind is None if the key does not exist or has expired.
	e entry.Entry
	// old is the kind of the entry in the table, even if the entry has expired; None if there is no
	// entry.
	old entry.Kind
	// oldExpiry is the expiry of the entry in the table.
	oldExpiry limit.Instant
}

// find fills in p, which must be zero, with the place of key in database db. h is the hash of key.
// The key has expired if its expiry is not later than the shard's latest instant. find notes an
// expired key for the observer.
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

// fill fills in p with the entry that the table of s has at r, and whose kind, expiry and value are
// given. p.e stays zero if the entry has expired.
func (p *place) fill(s *shard, r dense.Ref, k entry.Kind, expiry limit.Instant, value []byte) {
	p.r, p.old, p.oldExpiry = r, k, expiry
	if expiry > s.last {
		p.e.Kind, p.e.Expiry, p.e.Value = k, expiry, value
	}
}

// get returns the entry of key, whose hash is h, or an entry of kind None if key does not exist.
func (s *shard) get(db int, h uint64, key []byte) entry.Entry {
	var p place
	s.find(&p, db, h, key)
	return p.e
}

// stale reports whether the entry in the table at p has expired.
func (p *place) stale() bool { return p.e.Kind == entry.None && p.old != entry.None }

// removes reports whether an entry with the given expiry may be removed: the entry has expired, and
// [Keyspace.SweepTo] does not retain it.
func (s *shard) removes(expiry limit.Instant) bool { return expiry <= s.bound() }

// bound returns the latest expiry with which an entry may be removed now.
func (s *shard) bound() limit.Instant {
	return min(s.last, limit.Instant(s.removable.Load()))
}

// lockBare locks the shard for code without a handle. Changes under this lock are not recorded.
func (s *shard) lockBare() {
	s.mu.Lock()
	s.bare()
}

// lockFree does what lockBare does, once no key with hash h is claimed.
func (s *shard) lockFree(h uint64) {
	s.mu.Lock()
	if s.claimed {
		s.await(h)
	}
	s.bare()
}

// bare removes the state of the handle that locked the shard last. The shard is locked.
func (s *shard) bare() { s.recorder, s.by, s.server, s.slack = nil, nil, nil, 0 }

// await waits until no key with hash h is claimed. The caller has locked this shard and no other.
// await unlocks the shard while it waits, and locks it again before it returns.
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

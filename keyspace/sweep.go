package keyspace

import (
	"context"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/yield"
)

// sweepSlice is the number of entries that are examined under one lock, which takes a few tens of
// microseconds at worst.
const sweepSlice = 64

// Swept is the result of a Sweep: the numbers of entries that it examined and removed.
type Swept struct {
	Looked  int
	Removed int
}

// SuspendExpiry suspends the removal of expired keys, or resumes it. Commands do not find expired
// keys meanwhile, but counts include them. Any goroutine may call it.
func (ks *Keyspace) SuspendExpiry(hold bool) { ks.expiry.Store(hold) }

// SweepTo lets only keys be removed, by a Sweep or when they are found expired, whose expiry is at
// most at; [limit.MaxInstant], the default, means no bound. Commands do not find expired keys that
// are retained. A replica removes only keys that its primary can no longer prolong.
func (ks *Keyspace) SweepTo(at limit.Instant) { ks.removable.Store(int64(at)) }

// Watermark returns an instant such that no record which the journal has yet to receive is earlier.
// A batch reads the clock after it has entered, and leaves when the journal has its records.
func (ks *Keyspace) Watermark() limit.Instant { return ks.watermark.Advance(&ks.world, ks.clock.Now) }

// Sweep examines up to budget entries, from where the last Sweep stopped, and removes the expired
// ones. It takes a slice of each shard in turn and never holds a lock for long: draining one shard
// after another would starve the commands that need it. It does nothing while the world is stopped
// or expiry is suspended.
func (ks *Keyspace) Sweep(budget int) Swept {
	ks.sweepMu.Lock()
	defer ks.sweepMu.Unlock()
	w := &ks.sweeper
	var sum Swept
	if ks.expiry.Load() {
		return sum
	}
	longest, all, reading := time.Duration(0), time.Duration(0), ks.clock.Now()
	for short := 0; sum.Looked < budget && short < 2*len(ks.shards); {
		if !w.handle.Enter() {
			break
		}
		w.handle.Refresh()
		n := w.slice(min(sweepSlice, budget-sum.Looked))
		w.handle.Leave()
		now := ks.clock.Now()
		took := now.Sub(reading)
		longest, all, reading = max(longest, took), all+took, now
		sum.Looked += n.Looked
		sum.Removed += n.Removed
		if n.Looked < sweepSlice {
			short++ // that shard has been swept to its end
			continue
		}
		short = 0
		yield.Thread()
		reading = ks.clock.Now()
	}
	if ks.swept != nil {
		ks.swept(longest, all)
	}
	return sum
}

// slice sweeps a part of the next shard: one database after another, each from where the last slice
// stopped.
func (w *sweeper) slice(budget int) Swept {
	v := w.handle
	s := v.lockAt(w.shard)
	defer v.unlock(s)
	w.shard = (w.shard + 1) % len(v.ks.shards)
	removed := 0
	w.left = budget
	for range s.dbs {
		if s.dbs[s.sweepDB].t != nil {
			removed += s.sweep(s.sweepDB, &w.left)
		}
		if s.dbs[s.sweepDB].sweepPos == 0 { // its end was reached, even if the budget ended too
			s.sweepDB = (s.sweepDB + 1) % len(s.dbs)
		}
		if w.left == 0 {
			break
		}
	}
	return Swept{Looked: budget - w.left, Removed: removed}
}

// sweep removes expired entries of one database, until its end or the end of the budget.
func (s *shard) sweep(db int, budget *int) (removed int) {
	d := &s.dbs[db]
	for *budget > 0 {
		r, ok := d.t.Due(&d.sweepPos, budget, s.bound())
		if !ok {
			break
		}
		key, e := d.t.At(r)
		s.expire(&place{db: db, r: r, old: e.Kind, oldExpiry: e.Expiry}, key)
		removed++
	}
	return removed
}

// Parameters of Run. A round examines a part of all keys, so that an expired key which no command
// looks up is removed within half a minute or so. While many of the examined keys have expired, the
// next round begins at once, for at most three quarters of the time, so that a million keys that
// expire together are gone in half a second.
const (
	sweepRound    = 16 << 10
	sweepPerKey   = 256 // a round examines this fraction of the keys, if that is more
	sweepKeenness = 10  // continue at once while more than one in so many had expired
)

// sampled is a clock that has to be sampled regularly.
type sampled interface{ Sample() }

// Run does the regular work, sampling the clock and sweeping, until ctx ends.
func (ks *Keyspace) Run(ctx context.Context) {
	tick := time.NewTicker(ks.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if c, ok := ks.clock.(sampled); ok {
			c.Sample()
		}
		ks.housekeep()
	}
}

// housekeep sweeps for one tick.
func (ks *Keyspace) housekeep() {
	begun := ks.clock.Now()
	budget := max(sweepRound, ks.keys()/sweepPerKey)
	for ks.clock.Now().Sub(begun) < ks.every*3/4 {
		n := ks.Sweep(budget)
		if n.Removed*sweepKeenness <= n.Looked || n.Looked == 0 {
			return
		}
	}
}

// keys returns the number of keys in all databases.
func (ks *Keyspace) keys() (n int) {
	for i := range ks.shards {
		s := &ks.shards[i]
		s.mu.Lock()
		for db := range s.dbs {
			if t := s.dbs[db].t; t != nil {
				n += t.Len()
			}
		}
		s.mu.Unlock()
	}
	return n
}

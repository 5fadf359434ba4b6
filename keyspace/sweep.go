package keyspace

import (
	"context"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/yield"
)

// sweepSlice is the maximum number of entries that a sweep examines under one lock. Examining them
// takes a few tens of microseconds at worst.
const sweepSlice = 64

// Swept is the result of [Keyspace.Sweep]. Looked is the number of entries that were examined, and
// Removed the number of those that were removed because they had expired.
type Swept struct {
	Looked  int
	Removed int
}

// SuspendExpiry suspends the removal of expired keys if hold is true, and resumes it if hold is
// false. In between, commands do not find expired keys, but counts include them. Any goroutine may
// call SuspendExpiry.
func (ks *Keyspace) SuspendExpiry(hold bool) { ks.expiry.Store(hold) }

// SweepTo restricts the removal of expired keys to those whose expiry is at or before at; the
// others are retained. [limit.MaxInstant], the default, means no restriction. Commands do not find
// retained keys. A replica calls SweepTo so that it removes only keys that its primary can no
// longer prolong.
func (ks *Keyspace) SweepTo(at limit.Instant) { ks.removable.Store(int64(at)) }

// Watermark returns an instant that is not later than the instant of any record which the journal
// has yet to receive; 0 if no such instant is known. Such an instant is known because a batch reads
// the clock after [Handle.Enter], and calls [Handle.Leave] once the journal has its records.
func (ks *Keyspace) Watermark() limit.Instant { return ks.watermark.Advance(&ks.world, ks.clock.Now) }

// Sweep examines up to budget entries, continuing where the last Sweep stopped, and removes the
// expired ones. It examines a slice of each shard in turn and never holds a lock for long: sweeping
// a whole shard at once would starve the commands that need it. It stops early once it has swept
// all shards to their ends. It does nothing while the world is stopped or expiry is suspended. Only
// one Sweep runs at a time. At the end Sweep calls Options.Swept. The result has the numbers of
// examined and of removed entries.
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
			short++ // the shard has been swept to its end
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

// slice examines up to budget entries of the next shard: of one database after another, each from
// the position at which the last slice of this shard stopped.
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
		if s.dbs[s.sweepDB].sweepPos == 0 { // the sweep has reached the end of the database, even if the budget ended too
			s.sweepDB = (s.sweepDB + 1) % len(s.dbs)
		}
		if w.left == 0 {
			break
		}
	}
	return Swept{Looked: budget - w.left, Removed: removed}
}

// sweep removes expired entries of database db, until the end of the database or of the budget, and
// returns their number. It subtracts the number of examined entries from *budget.
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

// These constants are the parameters of housekeep. Each round examines a part of all keys, so that
// an expired key which no command looks up is removed within half a minute or so. If many of the
// examined keys had expired, the next round begins at once, for at most three quarters of the
// interval.
const (
	sweepRound    = 16 << 10 // minimum number of keys that a round examines
	sweepPerKey   = 256      // a round examines one in 256 of all keys, if that is more than sweepRound
	sweepKeenness = 10       // the next round begins at once if more than one in 10 examined keys had expired
)

// sampled is implemented by a clock that has to be sampled regularly.
type sampled interface{ Sample() }

// Run samples the clock and sweeps at the interval [Options.Housekeeping], until ctx is done. It
// does not return before, so it needs a goroutine of its own.
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

// housekeep sweeps in rounds, once per interval of Run: see sweepRound.
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

// keys returns the number of entries in all databases, including System. Expired entries count.
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

package keyspace

import (
	"context"
	"time"
)

// How hard Run sweeps. A round looks at a part of all keys, so that a key which
// nobody asks for is found within half a minute or so; while much of what it looks
// at has expired it goes on at once, for at most three quarters of the time, so that a
// million keys that expire together are gone in half a second.
const (
	sweepRound    = 16 << 10
	sweepPerKey   = 256 // a round looks at one key in so many, if that is more
	sweepKeenness = 10  // go on at once while more than one in so many had expired
)

// sampled is a clock that has to be sampled now and then.
type sampled interface{ Sample() }

// Run does what has to be done now and then, sampling the clock and sweeping,
// until ctx ends.
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

// keys is the number of keys in all databases.
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

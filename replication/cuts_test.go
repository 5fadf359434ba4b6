package replication_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/keyspace"
)

// TestCutsUnderChurn cuts the links of two replicas, and of one of a replica, at random while
// keys change. The writer waits for replicas that are far behind. So the backlog has what the
// replicas lack, and each has only one full resynchronization. In the end all keys must be equal.
func TestCutsUnderChurn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cuts := 60
		if drill {
			cuts = 1000
		}
		const backlog = 1 << 20
		w := newWeb(t)
		all := []*member{w.start("a:1", 0), w.start("b:2", time.Minute), w.start("c:3", -time.Minute), w.start("d:4", 0)}
		for _, p := range all {
			s := *p.set.Load()
			s.BacklogSize = backlog
			p.set.Store(&s)
		}
		a, replicas := all[0], all[1:]
		replicas[0].follow(a)
		replicas[1].follow(a)
		replicas[2].follow(replicas[0])
		for _, r := range replicas {
			r.awaitUp()
		}
		var ended atomic.Bool
		var changing sync.WaitGroup
		c, rng := a.client(), rand.New(rand.NewPCG(5, 1))
		changing.Go(func() {
			for !ended.Load() {
				least := a.source.Offset()
				for _, r := range replicas {
					least = min(least, r.source.Offset())
				}
				if a.source.Offset()-least > backlog/2 {
					time.Sleep(time.Millisecond) // let the replicas catch up
					continue
				}
				for range 25 {
					c.do(func(v *keyspace.Handle) { change(t, rng, v) })
				}
				time.Sleep(100 * time.Microsecond) // without a sleep, no time passes
			}
		})
		defer changing.Wait()
		defer ended.Store(true)
		random := rand.New(rand.NewPCG(5, 2))
		for range cuts {
			r := replicas[random.IntN(len(replicas))]
			w.cut(r.address)
			time.Sleep(time.Duration(random.IntN(3000)) * time.Microsecond) // let something happen meanwhile
			if random.IntN(4) == 0 {
				r.awaitUp()
			}
		}
		ended.Store(true)
		changing.Wait()
		awaitEqual(t, a, replicas...)
		full, partial := int64(0), int64(0)
		for _, p := range all {
			full, partial = full+p.source.Counts().SyncFull, partial+p.source.Counts().SyncPartialOK
		}
		t.Logf("%d cuts while %d MiB changed: %d full and %d partial syncs", cuts, a.source.Offset()>>20, full, partial)
		for _, r := range replicas {
			require.Equal(t, int64(1), r.keeper.suspended.Load(), "%s: the backlog had everything", r.address)
		}
		require.Greater(t, partial, int64(cuts/20))
	})
}

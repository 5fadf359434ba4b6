package persistence_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// crashed is a disk after a power failure, with what may be on it.
type crashed struct {
	fs *faultfs.FS
	// from and to are the oldest and newest state of history that it may hold.
	from, to int
}

// history is what a run looked like after each action.
type history struct {
	states []string
	// durable is the last state that was acknowledged as durable.
	durable int
}

// run acts for a while and gathers crashed disks, at any call, with a chance of
// one in rarity.
func crashRun(t *testing.T, seed uint64, rarity int) (history, []crashed, *clocktest.Clock) {
	rng := rand.New(rand.NewPCG(seed, 1))
	toss := rand.New(rand.NewPCG(seed, 2))
	fsys := faultfs.New()
	var (
		h       history
		crashes []crashed
		acting  bool
	)
	s := mustOpen(t, fsys, persistence.SyncEverySecond)
	h.states = append(h.states, s.state())
	fsys.Watch(func(_ int, crash func(*rand.Rand) *faultfs.FS) {
		if toss.IntN(rarity) == 0 {
			to := len(h.states) - 1
			if acting {
				to++
			}
			crashes = append(crashes, crashed{crash(toss), h.durable, to})
		}
	})
	for range 150 {
		acting = true
		s.act(rng)
		require.Equal(t, persistence.Kept, s.settled())
		h.states = append(h.states, s.state())
		acting = false
		switch n := rng.IntN(60); {
		case n < 8:
			require.NoError(t, s.log.Sync())
			h.durable = len(h.states) - 1
		case n < 14:
			s.log.Tick()
			h.durable = len(h.states) - 1
		case n < 16:
			_, err := s.dir.Rewrite(s.ks)
			require.NoError(t, err)
			h.durable = len(h.states) - 1
		case n < 17:
			s.close()
			h.durable = len(h.states) - 1
			again, err := open(t, fsys, s.clock, persistence.SyncEverySecond)
			require.NoError(t, err)
			require.Equal(t, h.states[h.durable], again.state())
			s.ks.Close()
			s = again
		}
	}
	fsys.Watch(nil)
	s.close()
	return h, crashes, s.clock
}

// The bar P8: whatever a power failure leaves, what is recovered is the state after
// some action, and no earlier one than the last that was durable; and what is
// recovered can be recovered again.
func TestEveryCrashRecoversAPrefix(t *testing.T) {
	total := 0
	for seed := uint64(0); seed < 40 && !t.Failed(); seed++ {
		h, crashes, clock := crashRun(t, seed, 20)
		total += len(crashes)
		for i, c := range crashes {
			before := c.fs.Kill()
			got := recovered(t, c.fs, clock, seed, i)
			require.Contains(t, alive(h.states[c.from:min(c.to+1, len(h.states))], clock), got, "seed %d, crash %d of states %d to %d", seed, i, c.from, c.to)
			require.Equal(t, got, recovered(t, c.fs, clock, seed, i), "loading again")
			require.Equal(t, got, recovered(t, before, clock, seed, i), "loading elsewhere")
		}
	}
	require.GreaterOrEqual(t, total, 500)
	t.Logf("%d crash states", total)
}

func recovered(t *testing.T, fsys *faultfs.FS, clock *clocktest.Clock, seed uint64, i int) string {
	s, err := open(t, fsys, clock, persistence.SyncEverySecond)
	require.NoError(t, err, "seed %d, crash %d", seed, i)
	defer s.ks.Close()
	defer s.close()
	return s.state()
}

// alive returns the states without what has expired by now: loading drops it.
func alive(states []string, clock *clocktest.Clock) (out []string) {
	for _, st := range states {
		out = append(out, withoutExpired(st, clock.Now()))
	}
	return out
}

package persistence_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/limit"
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
	at     []limit.Instant // of the last effect before each
	// durable is the last state that was acknowledged as durable.
	durable int
}

// add adds the state after an action, which had an effect or none.
func (h *history) add(s *stage, effect bool) {
	at := h.at[len(h.at)-1]
	if effect {
		at = s.clock.Now()
	}
	h.states, h.at = append(h.states, s.state()), append(h.at, at)
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
	h.states, h.at = append(h.states, s.state()), append(h.at, begin)
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
		effects := s.handle.Effects()
		if seed%2 == 0 {
			s.act(rng)
		} else {
			s.touch(rng)
		}
		effect := s.handle.Effects() > effects
		require.Equal(t, persistence.Kept, s.settled())
		h.add(s, effect)
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

// touch is act for keys of many elements, of which a log has patches. Windows of kind
// LOG are left out: the bytes behind their entries mean nothing and may differ.
func (s *stage) touch(rng *rand.Rand) {
	s.clock.Advance(time.Duration(1 + rng.IntN(1e8)))
	s.handle.Refresh()
	kind := []int{0, 1, 2, 4, 5, 6}[rng.IntN(6)]
	key := fmt.Appendf(nil, "key:%d:%d", kind, rng.IntN(2))
	switch rng.IntN(15) {
	case 0:
		s.handle.Delete(0, key)
	case 1:
		s.handle.Rename(0, key, fmt.Appendf(nil, "key:%d:%d", kind, rng.IntN(2)), false)
	case 2:
		s.handle.Expire(0, key, s.clock.Now().Add(time.Hour), 0)
	default:
		element(s.handle, kind, key, rng)
	}
}

// Whatever a power failure leaves, what is recovered is the state after
// some action, and no earlier one than the last that was durable; and what is
// recovered can be recovered again.
func TestEveryCrashRecoversAPrefix(t *testing.T) {
	effort.Alone(t)
	total := 0
	for seed := uint64(0); seed < 40 && !t.Failed(); seed++ {
		h, crashes, clock := crashRun(t, seed, 20)
		total += len(crashes)
		for i, c := range crashes {
			before := c.fs.Kill()
			resumed := latest(t, c.fs.Kill(), clock)
			got := recovered(t, c.fs, clock, seed, i)
			past := alive(h.states[c.from:min(c.to+1, len(h.states))], clock)
			require.Contains(t, past, got, "seed %d, crash %d of states %d to %d", seed, i, c.from, c.to)
			require.GreaterOrEqual(t, resumed, h.at[c.from+slices.Index(past, got)], "time would go back")
			require.Equal(t, got, recovered(t, c.fs, clock, seed, i), "loading again")
			require.Equal(t, got, recovered(t, before, clock, seed, i), "loading elsewhere")
		}
	}
	require.GreaterOrEqual(t, total, 500)
	t.Logf("%d crash states", total)
}

// latest is the instant from which a machine that was started anew goes on.
func latest(t *testing.T, fsys *faultfs.FS, clock *clocktest.Clock) limit.Instant {
	d, err := persistence.Open(options(fsys, clock))
	require.NoError(t, err)
	_, at, err := d.Clock()
	require.NoError(t, err)
	require.NoError(t, d.Close())
	return at
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

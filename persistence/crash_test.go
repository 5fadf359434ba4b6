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

// crashed is a disk after a power failure, with the states that it may have.
type crashed struct {
	fs *faultfs.FS
	// from and to are the oldest and newest state of history that it may hold.
	from, to int
}

// history has the states of a run after each action.
type history struct {
	states []string
	at     []limit.Instant // of the last effect before each
	// durable is the last state that was acknowledged as durable.
	durable int
}

// add adds the state after an action, which may have had no effect.
func (h *history) add(s *stage, effect bool) {
	at := h.at[len(h.at)-1]
	if effect {
		at = s.clock.Now()
	}
	h.states, h.at = append(h.states, s.state()), append(h.at, at)
}

// crashRun acts for a while and collects crashed disks, at any call, with a probability of one in
// rarity.
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

// touch is act for keys of many elements, which the log records by patches. It leaves out windows
// of kind LOG: the bytes behind their entries have no meaning and may differ.
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

// After a power failure the recovered state is the state after some action, and not an earlier one
// than the last that was durable. A second recovery has the same result.
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

// latest is the instant from which a machine continues after a restart.
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

// alive returns the states without keys that have expired by now, which loading drops.
func alive(states []string, clock *clocktest.Clock) (out []string) {
	for _, st := range states {
		out = append(out, withoutExpired(st, clock.Now()))
	}
	return out
}

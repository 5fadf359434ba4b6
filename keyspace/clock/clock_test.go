package clock_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

// machine is a computer with three clocks that a test sets.
type machine struct{ wall, mono, boot int64 }

func newMachine() *machine {
	return &machine{wall: int64(t0), mono: 5e9, boot: 900e9}
}

func (m *machine) run(d time.Duration) {
	m.wall += int64(d)
	m.mono += int64(d)
	m.boot += int64(d)
}

func (m *machine) suspend(d time.Duration) {
	m.wall += int64(d)
	m.boot += int64(d)
}

func (m *machine) step(d time.Duration) { m.wall += int64(d) }

func (m *machine) clock(o clock.Options) *clock.System {
	return clock.NewSystem(o.WithSources(
		func() int64 { return m.wall }, func() int64 { return m.mono }, func() int64 { return m.boot }))
}

func TestClockStartsAtTheWall(t *testing.T) {
	m := newMachine()
	c := m.clock(clock.Options{})
	require.Equal(t, t0, c.Now())
	m.run(3 * time.Second)
	require.Equal(t, t0.Add(3*time.Second), c.Now())
	require.Equal(t, c.Now(), c.Civil(c.Now()))
}

func TestClockGoesOnFromAnEarlierLife(t *testing.T) {
	m := newMachine()
	c := m.clock(clock.Options{Start: t0.Add(time.Hour)})
	require.Equal(t, t0.Add(time.Hour), c.Now())
	require.Equal(t, t0, c.Civil(c.Now()), "civil time is the wall's")
	c.Sample()
	require.Equal(t, -time.Hour, c.Step())
}

// TestClockThatGoesOnKeepsCivilInstants resumes a clock a moment after its start was computed, as
// every tool and server does that reads files: stored instants must read to the nanosecond as they
// were stored.
func TestClockThatGoesOnKeepsCivilInstants(t *testing.T) {
	m := newMachine()
	for _, late := range []time.Duration{-time.Second, -2400, 2400, time.Second} {
		c := m.clock(clock.Options{Start: t0.Add(late)})
		require.Equal(t, t0, c.Civil(t0))
		require.Equal(t, t0, c.Derived(t0))
		c.Sample()
		require.Zero(t, c.Step())
	}
}

func TestClockCountsSuspension(t *testing.T) {
	m := newMachine()
	c := m.clock(clock.Options{})
	m.run(time.Second)
	m.suspend(time.Hour)
	before := c.Now()
	require.Equal(t, t0.Add(time.Second), before)
	c.Sample()
	require.Equal(t, t0.Add(time.Second+time.Hour), c.Now())
	require.Zero(t, c.Step(), "the wall agrees")
}

func TestClockNeverRunsAhead(t *testing.T) {
	// The thread loses its core between the readings of a sample.
	m := newMachine()
	rng := rand.New(rand.NewPCG(1, 2))
	paused := func(r *int64) func() int64 {
		return func() int64 {
			was := *r
			m.run(time.Duration(rng.IntN(3)) * time.Millisecond)
			return was
		}
	}
	c := clock.NewSystem(clock.Options{}.WithSources(paused(&m.wall), paused(&m.mono), paused(&m.boot)))
	last := c.Now()
	for range 10_000 {
		c.Sample()
		now := c.Now()
		require.GreaterOrEqual(t, now, last)
		require.LessOrEqual(t, now, limit.Instant(m.wall).Add(4*time.Millisecond))
		last = now
	}
}

func TestClockReportsAndOutlastsSteps(t *testing.T) {
	m := newMachine()
	var steps []time.Duration
	c := m.clock(clock.Options{OnStep: func(d time.Duration) { steps = append(steps, d) }})
	tick := func(d time.Duration) {
		for ; d > 0; d -= 100 * time.Millisecond {
			m.run(100 * time.Millisecond)
			c.Sample()
		}
	}
	m.step(time.Second)
	tick(time.Minute)
	require.Empty(t, steps, "a second is no step")
	require.Zero(t, c.Step())

	m.step(time.Hour)
	tick(59 * time.Second)
	require.Equal(t, []time.Duration{time.Hour + time.Second}, steps, "once")
	require.Equal(t, time.Hour+time.Second, c.Step())
	require.Equal(t, c.Now(), c.Civil(c.Now()), "not yet")
	tick(2 * time.Second)
	require.Equal(t, limit.Instant(m.wall), c.Civil(c.Now()), "a step that lasts a minute is believed")
	require.Equal(t, c.Now(), c.Derived(limit.Instant(m.wall)))
	require.Equal(t, t0.Add(121*time.Second), c.Now(), "by civil time alone")
	require.Equal(t, time.Hour+time.Second, c.Step(), "the gauge stays")

	m.step(-time.Hour)
	tick(30 * time.Second)
	m.step(time.Hour)
	tick(2 * time.Minute)
	require.Len(t, steps, 2)
	require.Equal(t, limit.Instant(m.wall), c.Civil(c.Now()), "what goes back by itself moves nothing")

	for i := range 180 { // back and forth every second
		m.step(time.Duration(1-2*(i%2)) * time.Hour)
		tick(time.Second)
	}
	require.Equal(t, limit.Instant(m.wall), c.Civil(c.Now()))
}

// TestStepsMoveNoDecision makes the same calls on two machines. The wall clock of one of them is
// stepped all the time.
func TestStepsMoveNoDecision(t *testing.T) {
	calls := effort.Steps(50_000, 1_000_000)
	var m [2]*machine
	var v [2]*keyspace.Handle
	for i := range m {
		m[i] = newMachine()
		ks := keyspace.New(keyspace.Options{Clock: m[i].clock(clock.Options{})})
		t.Cleanup(ks.Close)
		v[i] = ks.NewHandle()
	}
	steps := []time.Duration{time.Second, -time.Second, time.Hour, -time.Hour, 10 * 365 * 24 * time.Hour, -20 * 365 * 24 * time.Hour}
	rng := rand.New(rand.NewPCG(7, 8))
	q := quota(t)
	for i := range calls {
		d := time.Duration(rng.Int64N(int64(20 * time.Millisecond)))
		if i%1000 == 0 {
			m[1].step(steps[rng.IntN(len(steps))])
		}
		k, n := key(rng.IntN(100)), int64(rng.IntN(4))
		var got [2]limit.Decision
		for j := range m {
			m[j].run(d)
			if i%100 == 0 {
				v[j].Keyspace().Clock().(*clock.System).Sample()
			}
			v[j].Refresh()
			var err error
			if got[j], err = asks.Throttle(v[j], 0, k, q, n); err != nil {
				require.NoError(t, err)
			}
		}
		if got[0] != got[1] {
			require.Equal(t, got[0], got[1], "call %d", i)
		}
	}
}

// TestSystemClock reads the real clocks.
func TestSystemClock(t *testing.T) {
	before := time.Now().UnixNano()
	c := clock.NewSystem(clock.Options{})
	last := c.Now()
	require.GreaterOrEqual(t, int64(last), before)
	for range 1000 {
		c.Sample()
		now := c.Now()
		require.GreaterOrEqual(t, now, last)
		last = now
	}
	now := int64(c.Now())
	require.GreaterOrEqual(t, now, before)
	require.LessOrEqual(t, now, time.Now().UnixNano()+1e9)
	fired := make(chan struct{})
	stopped := c.AfterFunc(time.Hour, func() { close(fired) })
	require.True(t, stopped.Stop())
	c.AfterFunc(time.Microsecond, func() { close(fired) })
	<-fired
}

package clock_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

// frame sends c a frame with the instant of d ago of a primary that differs from the machine's wall
// clock by off.
func (m *machine) frame(c *clock.System, off, d time.Duration) {
	c.Follow(limit.Instant(m.wall).Add(off - d))
}

func TestFollowGoesByTheLeastDelay(t *testing.T) {
	for _, off := range []time.Duration{0, 5 * time.Second, -time.Hour, 20 * 365 * 24 * time.Hour} {
		m := newMachine()
		c := m.clock(clock.Options{})
		primary := func() limit.Instant { return limit.Instant(m.wall).Add(off) }
		c.Set(primary().Add(-40 * time.Millisecond))
		require.Equal(t, primary().Add(-40*time.Millisecond), c.Now(), "set to whatever it is, even back")
		for _, d := range []time.Duration{30, 9, 7, 50, 8} {
			m.run(100 * time.Millisecond)
			m.frame(c, off, d*time.Millisecond)
		}
		require.InDelta(t, int64(primary().Add(-7*time.Millisecond)), int64(c.Now()), 30e3, "what is older is worth 10 µs less in 100 ms")
		require.LessOrEqual(t, c.Now(), primary().Add(-7*time.Millisecond))
		m.run(time.Minute) // no frame
		require.InDelta(t, int64(primary().Add(-7*time.Millisecond)), int64(c.Now()), 30e3)
	}
}

// TestCivilTimeIsTheSameBehindAStop: after a stop of seconds delayed frames move the clock back by
// that time, and the next frames move it forward again. Afterwards an instant reads as before to
// the nanosecond, and so as on the primary.
func TestCivilTimeIsTheSameBehindAStop(t *testing.T) {
	for _, stop := range []time.Duration{300 * time.Millisecond, 2 * time.Second, 20 * time.Second, time.Minute} {
		m := newMachine()
		c := m.clock(clock.Options{})
		c.Set(limit.Instant(m.wall).Add(-12 * time.Millisecond))
		for _, late := range []time.Duration{11 * time.Millisecond, 3 * time.Millisecond, stop, stop / 2, 2 * time.Millisecond, time.Millisecond} {
			if late == stop {
				m.run(stop)
			}
			m.run(100 * time.Millisecond)
			m.frame(c, 0, late)
		}
		require.Equal(t, t0, c.Civil(t0), stop)
		m.run(2 * time.Minute)
		c.Sample()
		require.Equal(t, t0, c.Civil(t0), stop)
	}
}

// TestFollowForgetsOldDelays increases the delay between primary and replica.
func TestFollowForgetsOldDelays(t *testing.T) {
	m := newMachine()
	c := m.clock(clock.Options{})
	c.Set(t0)
	delay, longer := time.Millisecond, 30*time.Millisecond
	for range 200 {
		m.run(100 * time.Millisecond)
		m.frame(c, 0, delay)
	}
	behind := func() time.Duration { return limit.Instant(m.wall).Sub(c.Now()) }
	require.InDelta(t, float64(delay), float64(behind()), 1)
	for range 95 {
		m.run(100 * time.Millisecond)
		m.frame(c, 0, longer)
	}
	require.Less(t, behind(), 3*time.Millisecond, "ten seconds at least")
	for range 110 {
		m.run(100 * time.Millisecond)
		m.frame(c, 0, longer)
	}
	require.InDelta(t, float64(longer), float64(behind()), 1, "twenty at most")
}

// TestFollowNeverGoesBackNorAhead plays frames with random delays between two machines whose
// clocks drift apart.
func TestFollowNeverGoesBackNorAhead(t *testing.T) {
	frames := effort.Steps(10_000, 100_000)
	rng := rand.New(rand.NewPCG(4, 2))
	for _, ppm := range []int64{0, 100, -100, 37} {
		m := newMachine()
		c := m.clock(clock.Options{})
		base, primary := t0, t0 // of the primary, whose second differs by ppm
		elapsed := int64(0)
		// The clock may be ahead by the drift since the last frame, or, while it stands still, by
		// the drift until then.
		var drifted, stands time.Duration
		run := func(d time.Duration) {
			m.run(d)
			elapsed += int64(d)
			drifted += d / 10_000
			stands = max(stands-d, 0)
			primary = base.Add(time.Duration(elapsed - elapsed/1_000_000*ppm))
		}
		c.Set(t0.Add(-time.Second))
		last := c.Now()
		check := func() {
			now := c.Now()
			if now < last {
				require.GreaterOrEqual(t, now, last, "it went back")
			}
			if slack := max(drifted, stands) + 200; now > primary.Add(slack) {
				require.LessOrEqual(t, now, primary.Add(slack), "ahead")
			}
			last = now
		}
		for i := range frames {
			at := primary
			delay := time.Duration(rng.ExpFloat64() * float64(2*time.Millisecond))
			if rng.IntN(50) == 0 {
				delay += time.Duration(rng.IntN(int(2 * time.Second)))
			}
			run(delay)
			check()
			c.Follow(at)
			stands, drifted = max(stands, drifted), 0
			check()
			if i > 400 { // twenty seconds
				require.LessOrEqual(t, primary.Sub(c.Now()), 20*time.Millisecond)
			}
			run(time.Duration(rng.IntN(int(100 * time.Millisecond))))
			check()
			if rng.IntN(10) == 0 {
				c.Sample()
			}
		}
	}
}

// TestFollowTakesDriftBackByStandingStill has the clock of the replica run faster than the assumed
// drift, or be ahead when it begins to follow.
func TestFollowTakesDriftBackByStandingStill(t *testing.T) {
	m := newMachine()
	c := m.clock(clock.Options{})
	primary := t0.Add(-2 * time.Second)
	last := c.Now()
	for i := range 3000 {
		m.run(100 * time.Millisecond)
		primary = primary.Add(99_900 * time.Microsecond) // 1000 ppm
		require.GreaterOrEqual(t, c.Now(), last)
		c.Follow(primary)
		last = c.Now()
		if i < 15 {
			require.Greater(t, last, primary, "it was two seconds ahead and was not set")
		}
		if i > 30 {
			require.LessOrEqual(t, last, primary.Add(20*time.Millisecond), "1000 ppm of 20 s")
		}
	}
}

func TestFollowCountsSuspensionOnce(t *testing.T) {
	for _, sampleFirst := range []bool{true, false} {
		m := newMachine()
		c := m.clock(clock.Options{})
		c.Set(t0)
		step := func() {
			m.run(100 * time.Millisecond)
			m.frame(c, 0, time.Millisecond)
		}
		for range 50 {
			step()
		}
		m.suspend(time.Hour)
		if sampleFirst {
			c.Sample()
			require.InDelta(t, m.wall-1e6, int64(c.Now()), 1e6)
		}
		m.frame(c, 0, time.Hour) // sent long before it is read
		c.Sample()
		require.InDelta(t, m.wall-1e6, int64(c.Now()), 1e6)
		step()
		require.InDelta(t, m.wall-1e6, int64(c.Now()), 1e6)
		require.LessOrEqual(t, int64(c.Now()), m.wall)
	}
}

// TestLeadGoesOnFromThePresentInstant ends Follow while the clock runs, and while it stands still.
func TestLeadGoesOnFromThePresentInstant(t *testing.T) {
	m := newMachine()
	c := m.clock(clock.Options{})
	c.StopFollowing() // it leads already
	require.Equal(t, t0, c.Now())
	c.Set(t0.Add(-time.Hour))
	m.run(time.Second)
	c.StopFollowing()
	require.Equal(t, t0.Add(time.Second-time.Hour), c.Now())
	m.run(time.Second)
	require.Equal(t, t0.Add(2*time.Second-time.Hour), c.Now())

	for range 2 {
		m.run(time.Second)
		c.Follow(t0.Add(-2 * time.Hour))
	}
	stands := c.Now()
	m.run(time.Minute)
	require.Equal(t, stands, c.Now())
	c.StopFollowing()
	require.Equal(t, stands, c.Now())
	m.run(time.Minute)
	require.Equal(t, stands.Add(time.Minute), c.Now())
}

// TestCivilTimeIsTheNodesOwn follows primaries whose clocks show another time.
func TestCivilTimeIsTheNodesOwn(t *testing.T) {
	m := newMachine()
	steps := 0
	c := m.clock(clock.Options{OnStep: func(time.Duration) { steps++ }})
	civil := func(within time.Duration) {
		t.Helper()
		require.InDelta(t, m.wall, int64(c.Civil(c.Now())), float64(within))
		require.Equal(t, c.Now(), c.Derived(c.Civil(c.Now())))
	}
	c.Set(t0.Add(-time.Hour))
	civil(0)
	for i := range 3000 {
		m.run(100 * time.Millisecond)
		m.frame(c, -time.Hour, time.Millisecond*time.Duration(i%5))
		c.Sample()
		civil(600 * time.Millisecond)
	}
	m.frame(c, time.Hour, 0) // the primary was replaced by one whose clock is ahead
	c.Sample()
	civil(600 * time.Millisecond)
	c.Set(limit.Instant(m.wall).Add(-3 * time.Millisecond))
	require.Equal(t, c.Now(), c.Civil(c.Now()), "instants read as on the primary where that is right")
	c.StopFollowing()
	c.Sample()
	require.Equal(t, c.Now(), c.Civil(c.Now()))
	require.Zero(t, steps, "the wall clock was not stepped")
}

func TestRecordHasTheFollowedInstant(t *testing.T) {
	m := newMachine()
	c := m.clock(clock.Options{})
	c.Set(t0.Add(time.Hour))
	m.run(time.Second)
	r := c.Record()
	require.Equal(t, t0.Add(time.Hour+time.Second), r.Derived)
	require.Equal(t, m.wall, r.Wall)
	require.Equal(t, m.boot, r.BootTime)
}

func TestFollowRefusesWhatIsNoInstant(t *testing.T) {
	m := newMachine()
	c := m.clock(clock.Options{})
	c.Set(t0)
	for _, at := range []limit.Instant{limit.MinInstant, -1, math.MaxInt64, math.MaxInt64 - 5} {
		c.Follow(at)
		require.Equal(t, t0, c.Now())
	}
	c.Set(limit.MaxInstant)
	m.run(time.Hour)
	require.Positive(t, c.Now())
}

// TestFollowedClockIsReadByMany: no goroutine reads an instant before one that another has read.
func TestFollowedClockIsReadByMany(t *testing.T) {
	c := clock.NewSystem(clock.Options{})
	var mu sync.Mutex
	last := c.Now() // guarded by mu
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				mu.Lock()
				now := c.Now()
				if now < last {
					t.Errorf("%d after %d", now, last)
				}
				last = now
				mu.Unlock()
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 9))
	for i := range 3000 {
		c.Follow(c.Now().Add(time.Duration(rng.IntN(2000)-1500) * time.Microsecond))
		if i%100 == 99 {
			c.StopFollowing()
		}
		c.Sample()
	}
	close(done)
	wg.Wait()
}

// BenchmarkNow reads a clock that runs on its own, and one that follows.
func BenchmarkNow(b *testing.B) {
	for _, name := range []string{"own", "followed"} {
		b.Run(name, func(b *testing.B) {
			c := clock.NewSystem(clock.Options{})
			if name == "followed" {
				c.Set(c.Now())
			}
			b.ReportAllocs()
			for b.Loop() {
				c.Now()
			}
		})
	}
}

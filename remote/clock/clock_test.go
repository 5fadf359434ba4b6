package clock_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/clock"
	"github.com/stretchr/testify/require"
)

const (
	ms     = time.Millisecond
	second = time.Second
	wall   = limit.Instant(1_700_000_000_000_000_000)
)

// sample returns a sample of a node whose clock is ahead of wall plus the stopwatch, read after a
// share of the round trip.
func sample(node string, sent, rtt, ahead time.Duration, share float64) clock.Sample {
	read := sent + time.Duration(float64(rtt)*share)
	return clock.Sample{Node: node, Sent: sent, Received: sent + rtt, Shown: wall.Add(read + ahead)}
}

func add(c *clock.Clock, s clock.Sample) { c.Add(s.Received, s) }

func TestFirstSampleSetsTheClock(t *testing.T) {
	var c clock.Clock
	_, ok := c.Now(0)
	require.False(t, ok)
	require.False(t, c.Ready())
	add(&c, sample("a", second, 2*ms, 0, .5))
	now, ok := c.Now(3 * second)
	require.True(t, ok)
	require.Equal(t, wall.Add(3*second), now)
}

// TestSampleThatIsOldWhenItIsTakenInCounts: the process was stopped in between.
func TestSampleThatIsOldWhenItIsTakenInCounts(t *testing.T) {
	var c clock.Clock
	c.Add(time.Hour, sample("a", second, 2*ms, 0, .5))
	now, ok := c.Now(time.Hour)
	require.True(t, ok)
	require.Equal(t, wall.Add(time.Hour), now)
}

func TestClockFollowsWhatNodesAgreeOn(t *testing.T) {
	for name, test := range map[string]struct {
		samples []clock.Sample
		want    time.Duration // ahead of wall, after an hour of slewing
	}{
		"one node":                         {[]clock.Sample{sample("a", 0, ms, 5*ms, .5)}, 5 * ms},
		"the sample that took least":       {[]clock.Sample{sample("a", 0, 10*ms, 0, 1), sample("a", second, ms, 0, .5), sample("a", 2*second, 8*ms, 0, 0)}, 0},
		"half of the way out is lost":      {[]clock.Sample{sample("a", 0, 10*ms, 0, 0)}, -5 * ms},
		"median of three":                  {[]clock.Sample{sample("a", 0, ms, 0, .5), sample("b", 0, ms, time.Hour, .5), sample("c", 0, ms, 2*ms, .5)}, 2 * ms},
		"between the two of two":           {[]clock.Sample{sample("a", 0, ms, 0, .5), sample("b", 0, ms, 10*ms, .5)}, 5 * ms},
		"a node that is silent has no say": {[]clock.Sample{sample("a", 0, ms, 20*ms, .5), sample("b", 60*second, ms, 0, .5)}, 0},
		"an old sample is forgotten":       {[]clock.Sample{sample("a", 0, ms, 0, .5), sample("a", 60*second, 9*ms, 3*ms, .5)}, 3 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			var c clock.Clock
			for _, s := range test.samples {
				add(&c, s)
			}
			now, ok := c.Now(time.Hour)
			require.True(t, ok)
			require.Equal(t, test.want, now.Sub(wall.Add(time.Hour)))
		})
	}
}

func TestFirstNodeWhoseClockIsWrongDoesNoHarm(t *testing.T) {
	var c clock.Clock
	add(&c, sample("a", 0, 0, time.Hour, .5))
	add(&c, sample("b", 0, 0, 0, .5))
	add(&c, sample("c", 0, 0, ms, .5))
	now, _ := c.Now(second)
	require.Equal(t, wall.Add(second+ms), now)
	require.Zero(t, c.State(second).Slewing)
	require.Zero(t, c.State(second).Jumps)
}

func TestClockIsSlewedBy500PPM(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"ahead": 100 * ms, "behind": -100 * ms} {
		t.Run(name, func(t *testing.T) {
			var c clock.Clock
			add(&c, sample("a", 0, 0, 0, .5))
			c.Now(0)
			add(&c, sample("a", 20*second, 0, ahead, .5))
			sign := ahead / ahead.Abs()
			for _, passed := range []time.Duration{0, second, 100 * second, 199 * second} {
				now, _ := c.Now(20*second + passed)
				require.Equal(t, sign*passed/2000, now.Sub(wall.Add(20*second+passed)), "after %v", passed)
			}
			now, _ := c.Now(20*second + 300*second)
			require.Equal(t, ahead, now.Sub(wall.Add(320*second)))
		})
	}
}

func TestClockNeverStepsBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := clock.Clock{MaxSkew: ms}
	var at time.Duration
	last := limit.MinInstant
	for range 20_000 {
		at += time.Duration(r.Int64N(int64(second)))
		ahead := time.Duration(r.Int64N(int64(2*time.Hour))) - time.Hour
		node, sent := string(rune('a'+r.IntN(5))), at-time.Duration(r.Int64N(int64(second)))
		c.Add(at, sample(node, sent, time.Duration(r.Int64N(int64(at-sent)+1)), ahead, r.Float64()))
		now, ok := c.Now(at)
		require.True(t, ok)
		require.GreaterOrEqual(t, now, last)
		last = now
	}
}

func TestJumpIsToldOnce(t *testing.T) {
	var told []time.Duration
	c := clock.Clock{MaxSkew: 250 * ms, OnJump: func(by time.Duration) { told = append(told, by) }}
	add(&c, sample("a", 0, 0, 0, .5))
	c.Now(0)
	add(&c, sample("a", 20*second, 0, 250*ms, .5))
	require.Empty(t, told, "that is within the bound")
	add(&c, sample("a", 40*second, 0, time.Hour, .5))
	add(&c, sample("a", 60*second, 0, time.Hour, .5))
	require.Len(t, told, 1)
	require.InDelta(t, time.Hour, told[0], float64(second))
	add(&c, sample("a", 80*second, 0, 0, .5))
	add(&c, sample("a", 100*second, 0, -time.Hour, .5))
	require.Len(t, told, 2)
	state := c.State(100 * second)
	require.EqualValues(t, 2, state.Jumps)
	require.True(t, state.Ready)
	require.Equal(t, 1, state.Nodes)
	require.Less(t, state.Slewing, -59*time.Minute)
}

func TestStateTellsHowFarNodesAreApart(t *testing.T) {
	var c clock.Clock
	require.Equal(t, clock.State{}, c.State(0))
	add(&c, sample("a", 0, 0, 0, .5))
	add(&c, sample("b", 0, 0, 30*ms, .5))
	state := c.State(0)
	require.Equal(t, 30*ms, state.Spread)
	require.Equal(t, 2, state.Nodes)
}

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

func TestPicturesAreFresh(t *testing.T) {
	for name, want := range pictures() {
		got, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "images", name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s: make generate", name)
	}
}

// TestOnePictureForTwoCommands: TB.ACQUIRE admits the same as CL.THROTTLE, so one picture stands
// for both.
func TestOnePictureForTwoCommands(t *testing.T) {
	greedy := bucket(tokenbucket.Call{Mode: tokenbucket.Greedy, Count: 1, Period: time.Second})
	require.Equal(t, run(cell()), run(greedy))
}

// offer does the same as run with other calls.
func offer(decide decider, calls []call) []passage {
	var through []passage
	for _, c := range calls {
		if allowed, wait := decide(start.Add(c.at), c.units); allowed {
			through = append(through, passage{c.at + max(0, wait), c.units})
		}
	}
	return through
}

func named(file string) decider {
	all := limiters()
	return all[slices.IndexFunc(all, func(l limiter) bool { return l.file == file })].decide
}

// each returns calls for one unit.
func each(from, to, step time.Duration) (calls []call) {
	for at := from; at < to; at += step {
		calls = append(calls, call{at, 1})
	}
	return calls
}

// TestWorstPatterns sends to every limiter the calls that make it admit the most within one window,
// which docs/limiters.md states.
func TestWorstPatterns(t *testing.T) {
	const ms = time.Millisecond
	even := windows(slidingwindow.Call{Mode: slidingwindow.Buckets, Slots: 5, Even: true})
	for _, c := range []struct {
		name   string
		decide decider
		calls  []call
		want   int64
	}{
		{"gcra", named("gcra"), append([]call{{0, 10}}, each(1*time.Second, window, 1*time.Second)...), 19},
		{"interval", named("interval"), []call{{0, 1}, {9999 * ms, 9}, {10000 * ms, 10}, {19998 * ms, 1}}, 19},
		{"leaky", named("leaky"), each(0, 5*time.Second, 10*ms), 10},
		{"debt", named("debt"), []call{{0, 10}, {1 * ms, 1000}, {2 * ms, 1}, {9999 * ms, 1}}, 1010},
		{"debt at once", named("debt"), []call{{0, 1000}}, 1000},
		{"fixed", named("fixed"), []call{{9999 * ms, 10}, {10000 * ms, 10}}, 20},
		{"counter", named("counter"), append([]call{{9999 * ms, 10}}, each(window, 2*window, 10*ms)...), 20},
		{"counter soon after the edge", named("counter"), append([]call{{9999 * ms, 10}}, each(window, window+2*time.Second, 10*ms)...), 12},
		{"buckets", named("buckets"), []call{{1999 * ms, 10}, {10000 * ms, 10}}, 20},
		{"buckets within all slots but one", named("buckets"), []call{{0, 10}, {7999 * ms, 10}}, 10},
		{"even", even, append([]call{{1999 * ms, 2}}, each(2*time.Second, 2*window, 10*ms)...), 12},
		{"log", named("log"), append([]call{{0, 4}, {5 * time.Second, 6}}, each(window, 2*window, 10*ms)...), 10},
	} {
		through := offer(c.decide, c.calls)
		slices.SortFunc(through, func(a, b passage) int { return int(a.at - b.at) })
		require.Equal(t, c.want, busiest(through), c.name)
	}
}

// TestBounds searches with random calls for more units within one window than docs/limiters.md
// allows.
func TestBounds(t *testing.T) {
	bounds := map[string]int64{"gcra": 20, "interval": 20, "counter": 20, "fixed": 20, "buckets": 20, "leaky": 10, "log": 10}
	rapid.Check(t, func(t *rapid.T) {
		file := rapid.SampledFrom([]string{"gcra", "interval", "counter", "fixed", "buckets", "leaky", "log"}).Draw(t, "limiter")
		step := rapid.SampledFrom([]time.Duration{1, 9 * time.Millisecond, 250 * time.Millisecond, time.Second, 1999 * time.Millisecond})
		largest := rapid.Int64Range(1, most)
		if file == "leaky" {
			largest = rapid.Just(int64(1)) // units of one call go ahead together
		}
		var calls []call
		at := time.Duration(0)
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			at += step.Draw(t, "step")
			calls = append(calls, call{at, largest.Draw(t, "units")})
		}
		require.LessOrEqual(t, busiest(offer(named(file), calls)), bounds[file], file)
	})
}

// TestStart: the load starts at the edge of a window.
func TestStart(t *testing.T) {
	require.Zero(t, start%limit.Instant(window))
}

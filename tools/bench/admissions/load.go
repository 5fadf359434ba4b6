package main

import (
	"slices"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Every limiter is set to 10 units per 10 seconds, and bursts of 10.
const (
	most   = 10
	window = 10 * time.Second
	length = 60 * time.Second // duration of the load, which the pictures show
)

// call is a call for a number of units, at a time after the start.
type call struct {
	at    time.Duration
	units int64
}

// load returns the calls that every limiter gets. Its parts show how limiters differ: a burst
// across the edge of a window, twice the rate for a while, one call for more than the limit, a
// burst after a pause, and half the rate.
func load() []call {
	var calls []call
	every := func(from, to, step time.Duration) {
		for at := from; at < to; at += step {
			calls = append(calls, call{at, 1})
		}
	}
	every(8*time.Second, 12*time.Second, 200*time.Millisecond)
	every(16*time.Second, 32*time.Second, 500*time.Millisecond)
	calls = append(calls, call{36 * time.Second, 15})
	every(45*time.Second, 46*time.Second, 50*time.Millisecond)
	every(48*time.Second, length, 2*time.Second)
	return calls
}

// passage is a number of units that a limiter has admitted together.
type passage = call

// decider decides whether units are admitted at an instant, and after which wait.
type decider func(now limit.Instant, units int64) (allowed bool, wait time.Duration)

// start is a multiple of the window since 1970, so that a window begins at it.
const start = limit.Instant(1_767_225_600_000_000_000)

// run passes the load to a limiter and returns what the limiter admits, ordered by time.
func run(decide decider) []passage {
	var through []passage
	for _, c := range load() {
		if allowed, wait := decide(start.Add(c.at), c.units); allowed {
			through = append(through, passage{c.at + max(0, wait), c.units})
		}
	}
	slices.SortStableFunc(through, func(a, b passage) int { return int(a.at - b.at) })
	return through
}

// units returns the sum of the units of the calls in [from, to).
func units(calls []call, from, to time.Duration) int64 {
	sum := int64(0)
	for _, c := range calls {
		if from <= c.at && c.at < to {
			sum += c.units
		}
	}
	return sum
}

// busiest returns the maximum number of units in a span of the length of the window.
func busiest(calls []call) int64 {
	peak := int64(0)
	for _, c := range calls {
		peak = max(peak, units(calls, c.at, c.at+window))
	}
	return peak
}

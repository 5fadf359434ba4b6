package tokenbucket_test

import (
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tokenbucket"
	"github.com/stretchr/testify/require"
)

const (
	second = time.Second
	ms     = time.Millisecond
)

// TestGreedyTimeline has the table of redis-cell's tests (src/cell/mod.rs, limit 5, one per
// second), with times rounded up.
func TestGreedyTimeline(t *testing.T) {
	c := call(tokenbucket.Greedy, 5, 1, second)
	play(t, second, []row{
		{0, with(c, quantity(6)), [5]int64{1, 5, 5, -1, 0}},
		{0, c, [5]int64{0, 5, 4, -1, 1}},
		{0, c, [5]int64{0, 5, 3, -1, 2}},
		{0, c, [5]int64{0, 5, 2, -1, 3}},
		{0, c, [5]int64{0, 5, 1, -1, 4}},
		{0, c, [5]int64{0, 5, 0, -1, 5}},
		{0, c, [5]int64{1, 5, 0, 1, 5}},
		{3000 * ms, c, [5]int64{0, 5, 2, -1, 3}},
		{3100 * ms, c, [5]int64{0, 5, 1, -1, 4}},
		{4000 * ms, c, [5]int64{0, 5, 1, -1, 4}},
		{8000 * ms, c, [5]int64{0, 5, 4, -1, 1}},
		{9500 * ms, c, [5]int64{0, 5, 4, -1, 1}},
		{9500 * ms, with(c, quantity(0)), [5]int64{0, 5, 4, -1, 1}},
		{9500 * ms, with(c, quantity(2)), [5]int64{0, 5, 2, -1, 3}},
		{9500 * ms, with(c, quantity(5)), [5]int64{1, 5, 2, 3, 3}},
		{15000 * ms, with(c, quantity(6)), [5]int64{1, 5, 5, -1, 0}},
	})
}

func TestIntervalTimeline(t *testing.T) {
	c := call(tokenbucket.Interval, 10, 5, 10*second)
	play(t, second, []row{
		{0, with(c, quantity(3)), [5]int64{0, 10, 7, -1, 10}},
		{0, with(c, quantity(7)), [5]int64{0, 10, 0, -1, 20}},
		{4 * second, c, [5]int64{1, 10, 0, 6, 16}},
		{4 * second, with(c, quantity(6)), [5]int64{1, 10, 0, 16, 16}},
		{10 * second, with(c, quantity(5)), [5]int64{0, 10, 0, -1, 20}},
		{10 * second, c, [5]int64{1, 10, 0, 10, 20}},
		{25 * second, c, [5]int64{0, 10, 4, -1, 15}},
	})
}

func TestIntervalReserves(t *testing.T) {
	c := with(call(tokenbucket.Interval, 2, 2, 10*second), quantity(2), wait(15*second))
	play(t, second, []row{
		{0, c, [5]int64{0, 2, 0, -1, 10}},
		{0, c, [5]int64{0, 2, 0, 10, 20}},
		{0, c, [5]int64{1, 2, 0, 5, 20}}, // the batch at 20 s would pay
		{5 * second, c, [5]int64{0, 2, 0, 15, 25}},
	})
}

func TestPartialAndForce(t *testing.T) {
	p := with(call(tokenbucket.Greedy, 3, 10, second), quantity(2), partial)
	play(t, second, []row{
		{0, p, [5]int64{0, 3, 1, -1, 1}},
		{0, p, [5]int64{1, 3, 0, -1, 1}}, // one of two granted
		{0, p, [5]int64{2, 3, 0, 1, 1}},
		{0, with(p, quantity(1)), [5]int64{1, 3, 0, 1, 1}},
	})
	c := call(tokenbucket.Greedy, 10, 1, second)
	play(t, second, []row{
		{0, with(c, quantity(14), force), [5]int64{0, 10, 0, 5, 14}}, // balance -4
		{0, c, [5]int64{1, 10, 0, 5, 14}},
		{0, with(c, quantity(-4)), [5]int64{0, 10, 0, -1, 10}},
		{0, with(c, quantity(-99)), [5]int64{0, 10, 10, -1, 0}},
	})
}

// TestGreedyRateChange is redis-cell#54: a debt of four tokens stays four tokens.
func TestGreedyRateChange(t *testing.T) {
	play(t, second, []row{
		{0, with(call(tokenbucket.Greedy, 16, 10, 20*second), quantity(3)), [5]int64{0, 16, 13, -1, 6}},
		{0, call(tokenbucket.Greedy, 16, 1000, 20*second), [5]int64{0, 16, 12, -1, 1}},
	})
}

func TestGreedyReserves(t *testing.T) {
	c := with(call(tokenbucket.Greedy, 2, 1, 100*ms), wait(250*ms))
	var k key
	for i, r := range []struct {
		at, wait, retry time.Duration
	}{
		{at: 0},
		{at: 0},
		{at: 0, wait: 100 * ms},
		{at: 0, wait: 200 * ms},
		{at: 0, retry: 50 * ms},
		{at: 0, retry: 50 * ms},
		{at: 50 * ms, wait: 250 * ms},
		{at: 100 * ms, retry: 50 * ms},
	} {
		d := k.do(t, epoch.Add(r.at), c)
		require.Equal(t, r.retry > 0, !d.Allowed(), "row %d", i)
		require.Equal(t, max(r.wait, r.retry), max(0, d.RetryAfter), "row %d", i)
	}
}

// TestLeakyTimeline has the waits of mennanov/limiters' leaky bucket. The retry of a refusal is 1
// ns after there is room.
func TestLeakyTimeline(t *testing.T) {
	two, three := call(tokenbucket.Leaky, 2, 1, 100*ms), call(tokenbucket.Leaky, 3, 1, 100*ms)
	for _, timeline := range [][]struct {
		at   time.Duration
		call tokenbucket.Call
		want time.Duration // for a grant the wait, for a refusal -(retry)
	}{
		{
			{0, two, 0},
			{0, two, 100 * ms},
			{0, two, -1},
			{100 * ms, two, 100 * ms},
			{150 * ms, two, 150 * ms},
			{160 * ms, two, -(40*ms + 1)},
		},
		{
			{0, three, 0},
			{0, three, 100 * ms},
			{0, three, 200 * ms},
			{0, three, -1},
			{50 * ms, three, 250 * ms},
			{50 * ms, three, -(50*ms + 1)},
			{50 * ms, with(three, wait(10*ms)), -(340 * ms)},
		},
	} {
		var k key
		for i, r := range timeline {
			d := k.do(t, epoch.Add(r.at), r.call)
			require.Equal(t, r.want >= 0, d.Allowed(), "row %d", i)
			want := max(r.want, -r.want)
			if want == 0 {
				want = limit.NoRetry
			}
			require.Equal(t, want, d.RetryAfter, "row %d", i)
		}
	}
}

func TestLeakyChargesAndRate(t *testing.T) {
	c := call(tokenbucket.Leaky, 3, 1, 100*ms)
	play(t, ms, []row{
		{0, with(c, quantity(5), partial), [5]int64{2, 3, 0, -1, 300}},
		{0, with(c, quantity(5), partial), [5]int64{5, 3, 0, 1, 300}},
		{0, with(c, force), [5]int64{0, 3, 0, 300, 400}},
		{0, with(c, quantity(0)), [5]int64{1, 3, 0, 1, 400}},
		{0, with(c, quantity(4)), [5]int64{1, 3, 0, -1, 400}},
		{0, with(c, quantity(-3)), [5]int64{0, 3, 2, -1, 100}},
		// The reserved slot stays; units after it take 10 ms each.
		{0, with(call(tokenbucket.Leaky, 30, 1, 10*ms), quantity(2)), [5]int64{0, 30, 18, 100, 120}},
		{50 * ms, with(call(tokenbucket.Leaky, 30, 1, 10*ms), peek), [5]int64{0, 30, 23, 70, 70}},
	})
}

func TestDebtTimeline(t *testing.T) {
	c := call(tokenbucket.Debt, 3, 1, second)
	play(t, second, []row{
		{0, with(c, quantity(10)), [5]int64{0, 3, 0, -1, 10}}, // balance -7
		{0, c, [5]int64{1, 3, 0, 7, 10}},
		{0, with(c, wait(2*second)), [5]int64{1, 3, 0, 5, 10}},
		{0, with(c, force), [5]int64{0, 3, 0, 8, 11}},
		{0, with(c, quantity(0)), [5]int64{1, 3, 0, 8, 11}},
		{8 * second, c, [5]int64{0, 3, 0, -1, 4}},
		// The promised second stays; the capacity doubles.
		{8 * second, with(c, func(c *tokenbucket.Call) { c.Capacity, c.Init = 6, 6 }), [5]int64{1, 6, 0, 1, 7}},
		// As with Greedy, the debt of seven tokens stays.
		{8 * second, call(tokenbucket.Greedy, 9, 2, second), [5]int64{0, 9, 1, -1, 4}},
	})
}

// TestNewCapacityScalesTheDebt halves the capacity of a bucket that is a third empty.
func TestNewCapacityScalesTheDebt(t *testing.T) {
	play(t, ms, []row{
		{0, with(call(tokenbucket.Debt, 6, 1, second), quantity(2)), [5]int64{0, 6, 4, -1, 2000}},
		{0, with(call(tokenbucket.Debt, 3, 1, second), peek), [5]int64{0, 3, 2, -1, 1000}},
		{0, with(call(tokenbucket.Debt, 3, 1, second), quantity(0)), [5]int64{0, 3, 2, -1, 1000}},
		{0, with(call(tokenbucket.Debt, 3, 1, 100*ms), quantity(1)), [5]int64{0, 3, 1, -1, 200}},
	})
}

func TestInitStartsShort(t *testing.T) {
	c := with(call(tokenbucket.Greedy, 4, 1, second), initial(1))
	play(t, second, []row{
		{0, with(c, quantity(0)), [5]int64{0, 4, 1, -1, 3}},
		{0, with(c, peek), [5]int64{0, 4, 1, -1, 3}},
		{0, with(c, quantity(-2)), [5]int64{0, 4, 1, -1, 3}},        // creates nothing
		{5 * second, with(c, quantity(2)), [5]int64{1, 4, 1, 1, 3}}, // creates the key
		{8 * second, with(c, quantity(4)), [5]int64{0, 4, 0, -1, 4}},
		{12*second + 3600*second - 1, with(c, quantity(4)), [5]int64{0, 4, 0, -1, 4}},
		{3612*second + 7204*second, with(c, quantity(4)), [5]int64{1, 4, 1, 3, 3}}, // starts again
	})
}

// TestModeChanges carries whole tokens from one mode to the next. A refused call gets its reply
// from the stored mode, with the time at which it would pass.
func TestModeChanges(t *testing.T) {
	greedy := call(tokenbucket.Greedy, 5, 1, second)
	interval := call(tokenbucket.Interval, 5, 2, 10*second)
	leaky := call(tokenbucket.Leaky, 5, 1, second)
	warm := with(call(tokenbucket.Warmup, 5, 1, second), warmup(4*second, 3))
	play(t, ms, []row{
		{0, with(greedy, quantity(3)), [5]int64{0, 5, 2, -1, 3000}},
		{500 * ms, with(interval, quantity(3)), [5]int64{1, 5, 2, 500, 2500}},
		{500 * ms, with(interval, quantity(2), peek), [5]int64{0, 5, 2, -1, 2500}},
		{500 * ms, interval, [5]int64{0, 5, 1, -1, 20000}},
		{10500 * ms, with(leaky, quantity(4)), [5]int64{1, 5, 3, 10000, 10000}},
		{10500 * ms, with(leaky, quantity(2)), [5]int64{0, 5, 1, 2000, 4000}},
		{10500 * ms, with(warm, quantity(2)), [5]int64{0, 5, 0, -1, 4000}}, // cold
		{14500 * ms, with(greedy, quantity(-1)), [5]int64{0, 5, 3, -1, 2000}},
	})
}

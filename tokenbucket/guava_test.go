package tokenbucket_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tokenbucket"
	"github.com/stretchr/testify/require"
)

// bursty returns a call like Guava's SmoothBursty, with an integer rate and a burst of one
// second.
func bursty(rate int64) tokenbucket.Call {
	return with(call(tokenbucket.Debt, rate, rate, second), initial(0), wait(tokenbucket.NoLimit))
}

// warming returns a call like Guava's SmoothWarmingUp.
func warming(rate int64, d time.Duration, cold float64) tokenbucket.Call {
	return with(call(tokenbucket.Warmup, 1000, rate, second), warmup(d, cold), wait(tokenbucket.NoLimit))
}

// permit is an acquire of Guava's tests: the idle time before it, its size, and how long the
// caller sleeps.
type permit struct {
	idle  time.Duration
	call  tokenbucket.Call
	sleep time.Duration
}

// acquireAll acquires the permits in order, and sleeps for each before the next.
func acquireAll(t *testing.T, permits []permit) {
	t.Helper()
	var k key
	now := epoch
	for i, p := range permits {
		now = now.Add(p.idle)
		d := k.do(t, now, p.call)
		require.True(t, d.Allowed())
		got := max(0, d.RetryAfter)
		require.InDelta(t, float64(p.sleep), float64(got), 100e3, "permit %d: %v", i, got)
		now = now.Add(got)
	}
}

// TestSmoothBursty has the rows of Guava's RateLimiterTest.
func TestSmoothBursty(t *testing.T) {
	five, one, two := bursty(5), bursty(1), bursty(2)
	for name, permits := range map[string][]permit{
		"simple":      {{0, five, 0}, {0, five, 200 * ms}, {0, five, 200 * ms}},
		"after pause": {{0, five, 0}, {400 * ms, five, 0}, {0, five, 0}, {0, five, 200 * ms}},
		"burst": {
			{0, five, 0},
			{2 * second, five, 0},
			{0, five, 0},
			{0, with(five, quantity(3)), 0},
			{0, five, 0},
			{0, five, 200 * ms},
		},
		"sizes": {
			{0, one, 0},
			{0, one, second},
			{0, with(one, quantity(2)), second},
			{0, with(one, quantity(4)), 2 * second},
			{0, with(one, quantity(8)), 4 * second},
			{0, one, 8 * second},
		},
		"rate": {
			{0, one, 0},
			{0, one, second},
			{0, two, second},
			{0, with(two, quantity(2)), 500 * ms},
			{0, with(two, quantity(4)), second},
			{0, two, 2 * second},
		},
	} {
		t.Run(name, func(t *testing.T) { acquireAll(t, permits) })
	}
}

func TestSmoothBurstyTimeout(t *testing.T) {
	var k key
	c := bursty(5)
	require.True(t, k.do(t, epoch, with(c, wait(0))).Allowed())
	require.True(t, k.do(t, epoch, with(c, wait(200*ms))).Allowed())
	require.False(t, k.do(t, epoch, with(c, wait(100*ms))).Allowed())
	require.True(t, k.do(t, epoch.Add(100*ms), with(c, wait(300*ms))).Allowed())
}

func TestSmoothWarmingUp(t *testing.T) {
	two := func(idle time.Duration, sleeps ...float64) []permit {
		var permits []permit
		for _, s := range sleeps {
			permits = append(permits, permit{idle, warming(2, 4*second, 3), time.Duration(s * 1e9)})
			idle = 0
		}
		return permits
	}
	cold := []float64{0, 1.375, 1.125, .875, .625, .5, .5, .5}
	warm := []float64{0, .5, .5, .5, .5, .5, .5, .5}
	all := func(rate int64, factor float64, sleeps ...float64) (permits []permit) {
		for _, s := range sleeps {
			permits = append(permits, permit{0, warming(rate, 4*second, factor), time.Duration(s * 1e9)})
		}
		return permits
	}
	for name, permits := range map[string][]permit{
		"cold":        two(0, cold...),
		"cold again":  append(two(0, cold...), two(4500*ms, cold...)...),
		"still warm":  append(two(0, cold...), two(2500*ms, warm...)...),
		"factor 10":   all(5, 10, 0, 1.7525, 1.2575, .7625, .3002, .2, .2, .2),
		"factor 1":    all(5, 1, 0, .2, .2, .2, .2, .2, .2, .2),
		"factor 1.5":  all(5, 1.5, 0, .296875, .290625, .284375, .278125),
		"rate change": append(two(0, cold[:3]...), permit{0, warming(4, 4*second, 3), 875 * ms}),
	} {
		t.Run(name, func(t *testing.T) { acquireAll(t, permits) })
	}
}

// TestWarmupPriceError compares the prices of the warm-up with the exact integral, for rates,
// factors and durations up to their limits.
func TestWarmupPriceError(t *testing.T) {
	random := newRandom(7)
	for range effort.Steps(5_000, 50_000) {
		c := call(tokenbucket.Warmup, 1<<40, 1, time.Duration(1+random.upTo(1+random.Int64N(1<<20))))
		c.Warmup = time.Duration(1 + random.upTo(1<<61-1))
		c.Cold = 1 + float64(random.upTo(1000))/8
		most := new(big.Rat).Mul(ratio(int64(c.Warmup), int64(c.Interval)), new(big.Rat).Add(
			ratio(1, 2), new(big.Rat).Quo(ratio(2, 1), new(big.Rat).SetFloat64(1+c.Cold))))
		limitOf, _ := most.Float64()
		stored := limitOf * random.Float64()
		if random.IntN(4) == 0 {
			stored = limitOf
		}
		c.Quantity = 1 + random.upTo(1<<40-1)
		if c.Validate() != nil {
			continue
		}
		k := key{mode: tokenbucket.Warmup, expiry: limit.MaxInstant, value: encode(int64(epoch), stored, limitOf, int64(c.Warmup))}
		require.NoError(t, tokenbucket.Check(k.mode, k.value))
		if k.decide(epoch, &c) != nil {
			continue // beyond 2^62 ns
		}
		exact := exactPrice(&c, stored)
		exact.Sub(exact, new(big.Rat).SetInt64(int64(k.plan.Decision.ResetAfter)))
		below, _ := exact.Float64()
		bound := c.Cold * float64(c.Warmup) / (1 << 49)
		require.LessOrEqual(t, below, 3+bound, "%+v stored %v", c, stored)
		require.GreaterOrEqual(t, below, -bound, "%+v stored %v", c, stored)
	}
}

// exactPrice integrates Guava's line over the permits that are taken, the stored ones first, in
// rational numbers.
func exactPrice(c *tokenbucket.Call, storedFloat float64) *big.Rat {
	rat := func() *big.Rat { return new(big.Rat) }
	stable, cold := ratio(int64(c.Interval), 1), rat().SetFloat64(c.Cold)
	cold.Mul(cold, stable)
	threshold := rat().Quo(ratio(int64(c.Warmup), 2), stable)
	rising := rat().Quo(ratio(int64(c.Warmup), 1), rat().Quo(rat().Add(stable, cold), ratio(2, 1)))
	slope := rat().Quo(rat().Sub(cold, stable), rising)
	stored, quantity := rat().SetFloat64(storedFloat), ratio(c.Quantity, 1)

	price := rat().Mul(stable, quantity)
	from, to := rat().Sub(stored, threshold), rat().Sub(rat().Sub(stored, quantity), threshold)
	if from.Sign() <= 0 {
		return price
	}
	if to.Sign() < 0 {
		to = rat()
	}
	square := func(x *big.Rat) *big.Rat { return rat().Mul(x, x) }
	triangle := rat().Mul(slope, rat().Sub(square(from), square(to)))
	return price.Add(price, triangle.Quo(triangle, ratio(2, 1)))
}

func ratio(a, b int64) *big.Rat { return big.NewRat(a, b) }

package tokenbucket_test

import (
	"math"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tokenbucket"
	"github.com/stretchr/testify/require"
)

// FuzzDecide: for all bytes that Check accepts and all calls that Validate accepts, Decide
// returns results within its bounds, writes nothing where it must not, and stores bytes that
// Check accepts.
func FuzzDecide(f *testing.F) {
	f.Add(uint8(1), encode(int64(epoch), int64(1e9)), int64(epoch), uint16(1), int64(5), int64(1), int64(1e9), int64(1), int64(5), int64(0), int64(1), 3.0)
	f.Add(uint8(2), encode(int64(epoch), int64(1e9), int64(5)), int64(epoch), uint16(0x0a), int64(5), int64(2), int64(7), int64(-9), int64(0), int64(9), int64(1), 3.0)
	f.Add(uint8(3), encode(int64(epoch), int64(4), int64(1), int64(1)), int64(epoch+9), uint16(0x0b), int64(1), int64(1), int64(math.MaxInt64), int64(3), int64(1), int64(0), int64(1), 3.0)
	f.Add(uint8(4), encode(int64(math.MaxInt64), int64(1)), int64(0), uint16(0x1d), int64(math.MaxInt64), int64(1), int64(1), int64(math.MinInt64), int64(1), int64(0), int64(1), 3.0)
	f.Add(uint8(5), encode(int64(math.MinInt64), 1.5, 2.5, int64(1<<61)), int64(epoch), uint16(0x05), int64(3), int64(1), int64(1e6), int64(3), int64(3), int64(math.MaxInt64), int64(1<<61), 1e18)
	f.Fuzz(func(t *testing.T, mode uint8, value []byte, now int64, choice uint16,
		capacity, count, period, quantity, initial, maxWait, warmup int64, cold float64,
	) {
		decideAnything(t, tokenbucket.Mode(mode), value, limit.Instant(now), &tokenbucket.Call{
			Mode: tokenbucket.Mode(choice % 8), Charge: tokenbucket.Charge(choice >> 3 & 3),
			Waits: choice>>5&1 != 0, Denied: choice>>6&1 != 0, Penalize: choice>>7&1 != 0 && penalizes(tokenbucket.Mode(choice%8)),
			Capacity: capacity, Count: count, Period: time.Duration(period),
			Interval: time.Duration(period), Quantity: quantity, Init: initial,
			MaxWait: time.Duration(maxWait), Warmup: time.Duration(warmup), Cold: cold,
		})
	})
}

// penalizes reports whether Penalize is for calls with the mode m.
func penalizes(m tokenbucket.Mode) bool { return m == tokenbucket.Greedy || m == tokenbucket.Interval }

// TestDecideAnything is FuzzDecide with numbers of every length, drawn so that more of them are
// valid.
func TestDecideAnything(t *testing.T) {
	random := newRandom(11)
	decided := 0
	for range 200_000 {
		n := func() int64 { return random.upTo(math.MaxInt64) }
		capacity := 1 + random.upTo(1<<random.IntN(63)-1)
		interval := time.Duration(1 + random.upTo(1<<random.IntN(63)-1))
		c := tokenbucket.Call{
			Mode: allModes[random.IntN(5)], Charge: tokenbucket.Charge(random.IntN(4)),
			Waits: true, Denied: random.IntN(8) == 0,
			Capacity: capacity, Count: 1 + random.upTo(math.MaxInt64-1), Interval: interval, Period: interval,
			Quantity: n() - n(), Init: capacity - random.upTo(capacity)*random.Int64N(2),
			MaxWait: time.Duration(n()), Warmup: time.Duration(1 + random.upTo(1<<61-1)), Cold: 1 + float64(random.upTo(1<<40))/64,
		}
		c.Penalize = random.IntN(4) == 0 && penalizes(c.Mode)
		mode := tokenbucket.Mode(random.IntN(6))
		at, most := n()-n(), float64(1+random.upTo(1<<62-1))
		values := [][]byte{
			nil, encode(at, 1+n()), encode(at, 1+random.upTo(1<<31), 1+random.upTo(1<<31-1)),
			encode(at, n(), 1+n(), 1+n()), encode(at, 1+n()),
			encode(at, most*random.Float64(), most, 1+random.upTo(1<<61-1)),
		}
		if decideAnything(t, mode, values[mode], limit.Instant(n()), &c) {
			decided++
		}
	}
	require.Greater(t, decided, 10_000)
}

// decideAnything reports whether the value and the call were valid. If they were, it checks the
// result of Decide.
func decideAnything(t *testing.T, mode tokenbucket.Mode, value []byte, now limit.Instant, c *tokenbucket.Call) bool {
	t.Helper()
	if mode != tokenbucket.None && tokenbucket.Check(mode, value) != nil || !sound(c) {
		return false
	}
	k := key{mode: mode, value: value, expiry: limit.MaxInstant}
	tokenbucket.Describe(mode, value, now, func(string, int64) {})
	tokenbucket.Cancel(mode, value, now, c, &k.plan)
	checkPlan(t, now, c, &k.plan)
	if err := tokenbucket.Decide(mode, value, k.expiry, now, c, &k.plan); err != nil {
		require.ErrorIs(t, err, limit.ErrOverflow)
		require.Equal(t, tokenbucket.Keep, k.plan.Action)
		return true
	}
	d := k.plan.Decision
	require.Equal(t, c.Capacity, d.Limit)
	require.GreaterOrEqual(t, d.Refused, int64(0))
	require.LessOrEqual(t, d.Refused, max(1, c.Quantity))
	if c.Charge == tokenbucket.Peek || c.Quantity == 0 {
		require.Equal(t, tokenbucket.Keep, k.plan.Action)
	}
	checkPlan(t, now, c, &k.plan)
	return true
}

// sound reports whether a command could have produced c.
func sound(c *tokenbucket.Call) bool {
	switch {
	case c.Mode < tokenbucket.Greedy || c.Mode > tokenbucket.Warmup || c.Capacity < 1 || c.Count < 1,
		c.Init < 0 || c.Init > c.Capacity, c.MaxWait < 0 || c.MaxWait > 0 && !c.Waits,
		c.Warmup < 1 || !(c.Cold >= 1) || math.IsInf(c.Cold, 0),
		(c.Mode == tokenbucket.Leaky || c.Mode == tokenbucket.Warmup) && c.Init < c.Capacity,
		(c.Mode == tokenbucket.Debt || c.Mode == tokenbucket.Warmup) && c.Charge == tokenbucket.Partial:
		return false
	}
	return c.Validate() == nil
}

func checkPlan(t *testing.T, now limit.Instant, c *tokenbucket.Call, p *tokenbucket.Plan) {
	t.Helper()
	require.GreaterOrEqual(t, p.Decision.Remaining, int64(0))
	require.LessOrEqual(t, p.Decision.Remaining, c.Capacity)
	require.GreaterOrEqual(t, p.Decision.ResetAfter, time.Duration(0))
	require.GreaterOrEqual(t, p.Decision.RetryAfter, limit.NoRetry)
	if p.Action == tokenbucket.Store {
		require.NoError(t, tokenbucket.Check(p.Mode, p.Apply(nil, nil)))
		require.GreaterOrEqual(t, p.Expiry, now)
	}
}

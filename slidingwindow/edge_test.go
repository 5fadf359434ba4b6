package slidingwindow_test

import (
	"math"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
)

// do makes a call that must not fail.
func (k *key) do(t *testing.T, now limit.Instant, c slidingwindow.Call) five {
	t.Helper()
	d, err := k.call(t, now, &c)
	require.NoError(t, err)
	return inMillis(d)
}

func TestForceBeyondInt64(t *testing.T) {
	for _, mode := range []slidingwindow.Mode{
		slidingwindow.Counter, slidingwindow.Fixed, slidingwindow.Log, slidingwindow.Buckets,
	} {
		c := slidingwindow.Call{
			Mode: mode, Limit: 1, Window: time.Second, Charge: slidingwindow.Force,
			Slots: 2, Quantity: math.MaxInt64,
		}
		var k key
		require.Equal(t, int64(0), k.do(t, at(0), c)[2], "%v", mode)
		c.Quantity = 1
		_, err := k.call(t, at(1), &c)
		require.ErrorIs(t, err, limit.ErrOverflow, "%v", mode)

		// Another window takes over all units, and has no room for more either.
		c.Window = 2 * time.Second
		_, err = k.call(t, at(1), &c)
		require.ErrorIs(t, err, limit.ErrOverflow, "%v", mode)
		c.Charge, c.Quantity = slidingwindow.Whole, math.MinInt64
		require.Equal(t, five{0, 1, 1, -1, 0}, k.do(t, at(1), c), "%v", mode)
	}
}

// TestCounterBeyondInt64 has an estimate beyond int64: all of the previous window and as much again
// in this one.
func TestCounterBeyondInt64(t *testing.T) {
	c := slidingwindow.Call{
		Mode: slidingwindow.Counter, Limit: math.MaxInt64, Window: time.Second,
		Charge: slidingwindow.Force, Quantity: math.MaxInt64,
	}
	var k key
	k.do(t, at(0), c)
	k.do(t, at(time.Second), c)
	c.Charge, c.Quantity = slidingwindow.Peek, 1
	require.Equal(t, five{1, math.MaxInt64, 0, 1001, 2000}, k.do(t, at(time.Second), c))

	c.Mode, c.Charge = slidingwindow.Fixed, slidingwindow.Whole
	c.Quantity = -5
	_, err := k.call(t, at(time.Second), &c)
	require.ErrorIs(t, err, limit.ErrOverflow)
	c.Quantity = math.MinInt64
	require.Equal(t, five{0, math.MaxInt64, 1, -1, 1000}, k.do(t, at(time.Second), c))
}

func TestPenaltyAtTheGreatestLimit(t *testing.T) {
	var k key
	c := slidingwindow.Call{
		Mode: slidingwindow.Fixed, Limit: math.MaxInt64, Window: time.Second,
		Quantity: math.MaxInt64, Penalize: true,
	}
	require.Equal(t, five{0, math.MaxInt64, 0, -1, 1000}, k.do(t, at(0), c))
	require.Equal(t, five{1, math.MaxInt64, 0, 1000, 1000}, k.do(t, at(0), c))
	require.Equal(t, slidingwindow.Keep, k.plan.Action, "limit+1 saturates, so there is nothing to add")
}

// TestOversizedPenaltyFillsAFreshKey: one call for more than the limit, which can never pass, uses
// the limit up.
func TestOversizedPenaltyFillsAFreshKey(t *testing.T) {
	var k key
	c := slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: 3, Window: time.Second, Quantity: 9, Penalize: true}
	require.Equal(t, five{1, 3, 0, -1, 1000}, k.do(t, at(0), c))
	c.Penalize, c.Quantity = false, 1
	require.Equal(t, five{1, 3, 0, 1000, 1000}, k.do(t, at(0), c))
}

// TestEndOfTime: durations stay exact even where instants saturate.
func TestEndOfTime(t *testing.T) {
	for _, mode := range []slidingwindow.Mode{
		slidingwindow.Counter, slidingwindow.Fixed, slidingwindow.Log, slidingwindow.Buckets,
	} {
		for _, now := range []limit.Instant{limit.MinInstant, limit.MinInstant + 1, 0, limit.MaxInstant - 1, limit.MaxInstant} {
			c := slidingwindow.Call{
				Mode: mode, Limit: 2, Window: slidingwindow.MaxWindow,
				Slots: slidingwindow.MaxSlots, Quantity: 2, First: mode != slidingwindow.Log,
			}
			var p slidingwindow.Plan
			require.NoError(t, slidingwindow.Decide(slidingwindow.None, nil, 0, now, &c, &p))
			require.Equal(t, slidingwindow.Store, p.Action)
			require.GreaterOrEqual(t, p.Decision.ResetAfter, slidingwindow.MaxWindow)
			require.Equal(t, now.Add(p.Decision.ResetAfter), p.Expiry)
			value := p.Apply(nil, nil)
			require.NoError(t, slidingwindow.Check(mode, value))

			require.NoError(t, slidingwindow.Decide(mode, value, p.Expiry, now, &c, &p))
			require.Equal(t, int64(1), p.Decision.Refused)
			require.GreaterOrEqual(t, p.Decision.RetryAfter, slidingwindow.MaxWindow, "%v at %d", mode, now)
		}
	}
}

// TestClockSetBack: usage at later instants is neither lost nor counted twice. For the limiter,
// time stands still until the clock has caught up.
func TestClockSetBack(t *testing.T) {
	want := map[slidingwindow.Mode][2]five{
		// 3 units are used at 5.4 s, then the clock shows 2.4 s: the window begins in 2.6 s.
		slidingwindow.Counter: {{1, 3, 0, 3601, 4267}, {0, 5, 1, -1, 4351}},
		slidingwindow.Fixed:   {{1, 3, 0, 3600, 3600}, {0, 5, 1, -1, 3600}},
		slidingwindow.Log:     {{1, 3, 0, 4000, 4000}, {0, 5, 1, -1, 4000}},
		slidingwindow.Buckets: {{1, 3, 0, 4000, 4000}, {0, 5, 1, -1, 4000}},
	}
	for mode, replies := range want {
		var k key
		c := slidingwindow.Call{Mode: mode, Limit: 3, Window: time.Second, Quantity: 3, Slots: 5}
		k.do(t, at(5400*ms), c)
		c.Quantity = 1
		require.Equal(t, replies[0], k.do(t, at(2400*ms), c), "%v", mode)
		c.Limit = 5
		require.Equal(t, replies[1], k.do(t, at(2400*ms), c), "%v", mode)
		c.Quantity = 0
		require.Equal(t, int64(1), k.do(t, at(5400*ms), c)[2], "%v: all four are used, whenever they came", mode)
	}
}

// TestExpiredKeyHasNoPhase: only a live key has a phase to keep.
func TestExpiredKeyHasNoPhase(t *testing.T) {
	c := slidingwindow.Call{Mode: slidingwindow.Counter, Limit: 5, Window: time.Second, First: true, Quantity: 1}
	var k key
	require.Equal(t, five{0, 5, 4, -1, 1001}, k.do(t, at(300*ms), c))
	require.Equal(t, five{0, 5, 3, -1, 1001}, k.do(t, at(800*ms), c), "the phase holds")
	c.Quantity = -2
	require.Equal(t, five{0, 5, 5, -1, 0}, k.do(t, at(900*ms), c))
	c.Quantity = 1
	require.Equal(t, five{0, 5, 4, -1, 1001}, k.do(t, at(900*ms), c), "a new key starts anew")
}

// TestChangedWindow: only a call that changes the state converts it.
func TestChangedWindow(t *testing.T) {
	var k key
	c := slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: 10, Window: 10 * time.Second, Quantity: 8}
	k.do(t, at(1*time.Second), c)
	c.Window, c.Quantity = 60*time.Second, 3
	require.Equal(t, five{1, 10, 2, 9000, 9000}, k.do(t, at(1*time.Second), c), "answered by the stored window")
	c.Charge = slidingwindow.Peek
	require.Equal(t, five{1, 10, 2, 9000, 9000}, k.do(t, at(1*time.Second), c))
	c.Charge, c.Quantity = slidingwindow.Whole, 2
	require.Equal(t, five{0, 10, 0, -1, 59000}, k.do(t, at(1*time.Second), c), "carried over")
	c.Mode, c.Quantity = slidingwindow.Log, -3
	require.Equal(t, five{0, 10, 3, -1, 60000}, k.do(t, at(2*time.Second), c), "a refund converts, too")
}

// TestApplyMemory: a value is updated in place if its size stays the same. Otherwise dst is used if
// it is large enough.
func TestApplyMemory(t *testing.T) {
	var p slidingwindow.Plan
	c := slidingwindow.Call{Mode: slidingwindow.Counter, Limit: 10, Window: time.Second, Quantity: 1}
	dst := make([]byte, 0, 64)
	require.NoError(t, slidingwindow.Decide(slidingwindow.None, nil, 0, at(0), &c, &p))
	value := p.Apply(nil, dst)
	require.Len(t, value, 32)
	require.Same(t, &dst[:1][0], &value[0])

	require.NoError(t, slidingwindow.Decide(p.Mode, value, 0, at(1), &c, &p))
	require.Same(t, &value[0], &p.Apply(value, nil)[0])

	c.Mode, c.Slots = slidingwindow.Buckets, 10
	before := string(value)
	require.NoError(t, slidingwindow.Decide(slidingwindow.Counter, value, 0, at(2), &c, &p))
	require.Len(t, p.Apply(value, nil), 24+8*10)
	require.Equal(t, before, string(value))
}

// TestLogMemory: the ring doubles as it grows, stops at the cap, and shrinks when its entries
// expire.
func TestLogMemory(t *testing.T) {
	var k key
	c := slidingwindow.Call{Mode: slidingwindow.Log, Limit: 100, LogMaxEntries: 100, Window: time.Second, Quantity: 1}
	sizes := map[int]int{1: 2, 2: 2, 3: 4, 5: 8, 9: 16, 64: 64, 65: 128, 100: 128}
	for i := 1; i <= 100; i++ {
		k.do(t, at(time.Duration(i)*ms), c)
		if entries, ok := sizes[i]; ok {
			require.Len(t, k.value, 24+16*entries, "after %d", i)
		}
	}
	c.Charge = slidingwindow.Force
	require.Equal(t, five{0, 100, 0, 901, 1000}, k.do(t, at(101*ms), c), "two have to expire")
	require.Len(t, k.value, 24+16*128, "the newest entry moves instead of another coming")
	c.Charge = slidingwindow.Whole
	k.do(t, at(1091*ms), c)
	require.Len(t, k.value, 24+16*32, "ten are left")
	require.Equal(t, five{0, 100, 89, -1, 1000}, k.do(t, at(1092*ms), c))
}

func TestUnknownMode(t *testing.T) {
	var p slidingwindow.Plan
	c := slidingwindow.Call{Mode: slidingwindow.Counter, Limit: 1, Window: 1, Quantity: 1}
	require.ErrorIs(t, slidingwindow.Decide(99, nil, 0, 0, &c, &p), limit.ErrWrongType)
	require.Equal(t, slidingwindow.Keep, p.Action)
}

package tokenbucket_test

import (
	"math"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tokenbucket"
	"github.com/stretchr/testify/require"
)

func warm() tokenbucket.Call {
	return with(call(tokenbucket.Warmup, 5, 1, second), warmup(4*second, 3))
}

// TestStoredForms pins the bytes that are written to disk.
func TestStoredForms(t *testing.T) {
	at := int64(epoch)
	for _, s := range []struct {
		call   tokenbucket.Call
		name   string
		value  []byte
		expiry limit.Instant
	}{
		{call(tokenbucket.Greedy, 5, 1, second), "greedy", encode(at+1e9, int64(1e9)), epoch + 1e9},
		{call(tokenbucket.Debt, 5, 1, second), "debt", encode(at+1e9, int64(1e9), int64(5)), epoch + 1e9},
		{call(tokenbucket.Interval, 5, 2, 3*second), "interval", encode(at, int64(1), int64(2), int64(3e9)), epoch + 3e9},
		{call(tokenbucket.Leaky, 5, 1, second), "leaky", encode(at+1e9, int64(1e9)), epoch + 1e9},
		{warm(), "warmup", encode(at+2.5e9, 3.0, 4.0, int64(4e9)), epoch + 3.5e9},
	} {
		t.Run(s.name, func(t *testing.T) {
			var k key
			k.do(t, epoch, s.call)
			require.Equal(t, s.name, k.mode.String())
			require.Equal(t, s.value, k.value)
			require.Equal(t, s.expiry, k.expiry)
			require.NoError(t, tokenbucket.Check(k.mode, k.value))
			require.Error(t, tokenbucket.Check(k.mode, k.value[1:]))
		})
	}
}

func TestModeNames(t *testing.T) {
	require.Equal(t, "none", tokenbucket.None.String())
	require.Equal(t, "unknown", tokenbucket.Mode(6).String())
}

// TestApplyReusesMemory: Apply uses the value's own memory if it is large enough, and otherwise
// that of dst.
func TestApplyReusesMemory(t *testing.T) {
	var k key
	k.do(t, epoch, call(tokenbucket.Greedy, 5, 1, second))
	c := call(tokenbucket.Greedy, 5, 1, second)
	require.NoError(t, k.decide(epoch, &c))
	require.Same(t, &k.value[0], &k.plan.Apply(k.value, nil)[0])

	c = call(tokenbucket.Interval, 5, 1, second)
	require.NoError(t, k.decide(epoch, &c))
	dst := make([]byte, 0, 32)
	grown := k.plan.Apply(k.value[:16:16], dst)
	require.Same(t, &dst[:1][0], &grown[0])
	require.NoError(t, tokenbucket.Check(tokenbucket.Interval, grown))

	c = with(c, peek)
	require.NoError(t, k.decide(epoch, &c))
	require.Equal(t, []byte{7}, k.plan.Apply([]byte{7}, dst))
}

func TestCheckRefuses(t *testing.T) {
	at := int64(epoch)
	for name, s := range map[string]struct {
		mode  tokenbucket.Mode
		value []byte
	}{
		"no mode":          {tokenbucket.None, nil},
		"unknown mode":     {6, encode(at, at)},
		"no interval":      {tokenbucket.Greedy, encode(at, int64(0))},
		"leaky backwards":  {tokenbucket.Leaky, encode(at, int64(-1))},
		"no capacity":      {tokenbucket.Debt, encode(at, int64(1), int64(0))},
		"too much debt":    {tokenbucket.Debt, encode(at, int64(1<<31), int64(1<<31+1))},
		"less than unused": {tokenbucket.Interval, encode(at, int64(-1), int64(1), int64(1))},
		"no count":         {tokenbucket.Interval, encode(at, int64(1), int64(0), int64(1))},
		"no period":        {tokenbucket.Interval, encode(at, int64(1), int64(1), int64(0))},
		"more than most":   {tokenbucket.Warmup, encode(at, 2.0, 1.0, int64(1))},
		"not a number":     {tokenbucket.Warmup, encode(at, math.NaN(), 1.0, int64(1))},
		"no most":          {tokenbucket.Warmup, encode(at, 0.0, 0.0, int64(1))},
		"endless":          {tokenbucket.Warmup, encode(at, 0.0, math.Inf(1), int64(1))},
		"warm at once":     {tokenbucket.Warmup, encode(at, 0.0, 1.0, int64(0))},
		"never warm":       {tokenbucket.Warmup, encode(at, 0.0, 1.0, int64(1<<61+1))},
	} {
		require.Error(t, tokenbucket.Check(s.mode, s.value), name)
	}
}

func TestDescribe(t *testing.T) {
	at := int64(epoch)
	for _, s := range []struct {
		call tokenbucket.Call
		want map[string]int64
	}{
		{call(tokenbucket.Greedy, 5, 1, second), map[string]int64{
			"tat-ns": at + 1e9, "interval-ns": 1e9, "debt-ns": 75e7, "used": 1, "reset-ms": 750,
		}},
		{call(tokenbucket.Debt, 5, 1, second), map[string]int64{
			"tat-ns": at + 1e9, "interval-ns": 1e9, "capacity": 5, "debt-ns": 75e7, "used": 1, "reset-ms": 750,
		}},
		{with(call(tokenbucket.Interval, 9, 2, second/5), quantity(4)), map[string]int64{
			"last-ns": at + 2e8, "used": 2, "count": 2, "period-ns": 2e8, "reset-ms": 150,
		}},
		{call(tokenbucket.Leaky, 5, 1, second), map[string]int64{
			"next-ns": at + 1e9, "interval-ns": 1e9, "debt-ns": 75e7, "used": 0, "reset-ms": 750,
		}},
		{warm(), map[string]int64{
			"next-ns": at + 2.5e9, "warmup-ns": 4e9, "stored-millionths": 3e6,
			"capacity-millionths": 4e6, "debt-ns": 2.25e9, "reset-ms": 2250,
		}},
	} {
		var k key
		k.do(t, epoch, s.call)
		got := map[string]int64{}
		tokenbucket.Describe(k.mode, k.value, epoch.Add(250*ms), func(field string, value int64) { got[field] = value })
		require.Equal(t, s.want, got, s.call.Mode.String())
	}
	tokenbucket.Describe(tokenbucket.None, nil, epoch, func(string, int64) { t.Fatal("nothing to describe") })
}

// TestRoomEqualsTheReplyToQuantityZero compares Room with Decide, in every mode, while a bucket
// fills up. Without a capacity, only Debt and Warmup have an answer.
func TestRoomEqualsTheReplyToQuantityZero(t *testing.T) {
	for _, c := range []tokenbucket.Call{
		with(call(tokenbucket.Greedy, 5, 1, second), quantity(4)),
		with(call(tokenbucket.Debt, 5, 1, second), quantity(9)),
		with(call(tokenbucket.Interval, 9, 2, second/5), quantity(7)),
		with(call(tokenbucket.Leaky, 5, 1, second), quantity(4)),
		warm(),
	} {
		var k key
		k.do(t, epoch, c)
		for _, after := range []time.Duration{0, 250 * ms, 1500 * ms, 20 * second} {
			var p tokenbucket.Plan
			look := with(c, quantity(0))
			require.NoError(t, tokenbucket.Decide(k.mode, k.value, 0, epoch.Add(after), &look, &p))
			most, remaining := tokenbucket.Room(k.mode, k.value, epoch.Add(after), c.Capacity)
			require.Equal(t, []int64{p.Decision.Limit, p.Decision.Remaining}, []int64{most, remaining}, "%v after %v", c.Mode, after)
			most, remaining = tokenbucket.Room(k.mode, k.value, epoch.Add(after), tokenbucket.Unknown)
			want := []int64{tokenbucket.Unknown, tokenbucket.Unknown}
			switch c.Mode {
			case tokenbucket.Debt:
				want[0] = c.Capacity
				fallthrough
			case tokenbucket.Warmup:
				want[1] = p.Decision.Remaining
			}
			require.Equal(t, want, []int64{most, remaining}, "%v after %v", c.Mode, after)
		}
	}
	most, remaining := tokenbucket.Room(tokenbucket.None, nil, epoch, 5)
	require.Equal(t, []int64{-1, -1}, []int64{most, remaining})
}

// TestCancelGivesTokensBackInTheStoredMode cancels a wait. The tokens are given back in the mode
// and at the rate that is stored at that time.
func TestCancelGivesTokensBackInTheStoredMode(t *testing.T) {
	for _, c := range []tokenbucket.Call{
		call(tokenbucket.Greedy, 2, 1, second),
		call(tokenbucket.Debt, 2, 1, second),
		call(tokenbucket.Interval, 2, 1, second),
		call(tokenbucket.Leaky, 4, 1, second),
	} {
		t.Run(c.Mode.String(), func(t *testing.T) {
			c.Quantity, c.Waits, c.MaxWait = 2, true, tokenbucket.NoLimit
			var k key
			k.do(t, epoch, c)
			k.do(t, epoch, c)
			require.Equal(t, 4*second, k.plan.Decision.ResetAfter)

			tokenbucket.Cancel(k.mode, k.value, epoch.Add(500*ms), &c, &k.plan)
			require.Equal(t, tokenbucket.Store, k.plan.Action)
			k.apply()
			require.Equal(t, epoch.Add(2*second), k.expiry)

			other := c // the mode and rate of another caller stay
			other.Mode, other.Interval, other.Quantity = tokenbucket.Greedy, 1, 1
			tokenbucket.Cancel(k.mode, k.value, epoch.Add(500*ms), &other, &k.plan)
			k.apply()
			require.Equal(t, c.Mode, k.mode)
			require.Equal(t, epoch.Add(second), k.expiry)

			tokenbucket.Cancel(k.mode, k.value, epoch.Add(600*ms), &c, &k.plan)
			require.Equal(t, tokenbucket.Delete, k.plan.Action)
		})
	}
	t.Run("warmup", func(t *testing.T) {
		var k key
		c := with(warm(), quantity(2), wait(tokenbucket.NoLimit))
		k.do(t, epoch, c)
		reset := k.do(t, epoch, c).ResetAfter
		tokenbucket.Cancel(k.mode, k.value, epoch, &c, &k.plan)
		require.Equal(t, reset-2*time.Second, k.plan.Decision.ResetAfter)
	})
	t.Run("nothing there", func(t *testing.T) {
		var p tokenbucket.Plan
		c := call(tokenbucket.Greedy, 2, 1, second)
		tokenbucket.Cancel(tokenbucket.None, nil, epoch, &c, &p)
		require.Equal(t, tokenbucket.Keep, p.Action)
	})
}

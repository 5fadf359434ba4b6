package tokenbucket_test

import (
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tokenbucket"
	"github.com/stretchr/testify/require"
)

// epoch is an instant that is a multiple of every period in the tests.
const epoch limit.Instant = 1_800_000_000_000_000_000

// call returns a call of one token, with count of them per period.
func call(mode tokenbucket.Mode, capacity, count int64, period time.Duration) tokenbucket.Call {
	return tokenbucket.Call{
		Mode:     mode,
		Capacity: capacity,
		Count:    count,
		Period:   period,
		Interval: limit.Interval(int64(period), time.Nanosecond, count),
		Quantity: 1,
		Init:     capacity,
		Cold:     3,
	}
}

// key is one key with its natural expiry.
type key struct {
	mode   tokenbucket.Mode
	value  []byte
	expiry limit.Instant
	plan   tokenbucket.Plan
}

// decide makes the call c without storing anything.
func (k *key) decide(now limit.Instant, c *tokenbucket.Call) error {
	if k.mode != tokenbucket.None && k.expiry <= now {
		k.mode = tokenbucket.None
	}
	return tokenbucket.Decide(k.mode, k.value, k.expiry, now, c, &k.plan)
}

// apply applies the plan of the last decision to the key.
func (k *key) apply() {
	switch k.plan.Action {
	case tokenbucket.Delete:
		k.mode = tokenbucket.None
	case tokenbucket.Store:
		k.value = k.plan.Apply(k.value, nil)
		k.mode, k.expiry = k.plan.Mode, k.plan.Expiry
	}
}

// do makes the call c and stores its effect.
func (k *key) do(t testing.TB, now limit.Instant, c tokenbucket.Call) limit.Decision {
	t.Helper()
	require.NoError(t, c.Validate())
	require.NoError(t, k.decide(now, &c))
	k.apply()
	return k.plan.Decision
}

// clone returns an independent copy.
func (k *key) clone() *key {
	twin := *k
	twin.value = append([]byte(nil), k.value...)
	return &twin
}

// five returns the five integers of a decision, with times rounded up to unit.
func five(d limit.Decision, unit time.Duration) [5]int64 {
	round := limit.SecondsUp
	if unit == time.Millisecond {
		round = limit.MillisUp
	}
	return [5]int64{d.Refused, d.Limit, d.Remaining, round(d.RetryAfter), round(d.ResetAfter)}
}

// row is one call of a timeline: when, what, and the reply.
type row struct {
	at   time.Duration
	call tokenbucket.Call
	want [5]int64
}

// with returns c after each of the changes.
func with(c tokenbucket.Call, changes ...func(*tokenbucket.Call)) tokenbucket.Call {
	for _, change := range changes {
		change(&c)
	}
	return c
}

func quantity(n int64) func(*tokenbucket.Call) {
	return func(c *tokenbucket.Call) { c.Quantity = n }
}

func initial(n int64) func(*tokenbucket.Call) {
	return func(c *tokenbucket.Call) { c.Init = n }
}

func wait(d time.Duration) func(*tokenbucket.Call) {
	return func(c *tokenbucket.Call) { c.MaxWait, c.Waits = d, true }
}

func warmup(d time.Duration, cold float64) func(*tokenbucket.Call) {
	return func(c *tokenbucket.Call) { c.Warmup, c.Cold = d, cold }
}

func peek(c *tokenbucket.Call)    { c.Charge = tokenbucket.Peek }
func partial(c *tokenbucket.Call) { c.Charge = tokenbucket.Partial }
func force(c *tokenbucket.Call)   { c.Charge = tokenbucket.Force }
func denied(c *tokenbucket.Call)  { c.Denied = true }

func play(t *testing.T, unit time.Duration, rows []row) {
	t.Helper()
	var k key
	for i, r := range rows {
		d := k.do(t, epoch.Add(r.at), r.call)
		require.Equal(t, r.want, five(d, unit), "row %d at %v", i, r.at)
	}
}

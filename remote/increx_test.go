package remote

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/counter"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/longdouble"
)

// count returns INCREX key UBOUND most EX 60 ENX at an instant.
func count(key string, most int64, now limit.Instant) *decide.Ask {
	return &decide.Ask{Family: decide.Counter, Key: []byte(key), Counter: counter.Call{
		By: 1, Lower: math.MinInt64, Upper: most, Expiry: counter.SetIfNone, At: now.Add(time.Minute),
	}}
}

// TestCountersAreShared: two servers add to one number, which expires when the first call said, and
// other commands see the key as a string.
func TestCountersAreShared(t *testing.T) {
	c := newCloud(1)
	one := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	two := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	begin := one.Now()
	for i, s := range []*server{one, two, one, two, two} {
		a := count("k", 3, s.Now())
		s.call(t, a)
		require.NoError(t, a.Err)
		want := counter.Result{Value: min(int64(i)+1, 3)}
		if i < 3 {
			want.Applied = 1
		}
		want.Denied = i >= 3
		require.Equal(t, want, a.Counted, i)
	}
	for _, step := range []struct {
		op   decide.Op
		look func(r *decide.AdminResult)
	}{
		{decide.Text, func(r *decide.AdminResult) { require.Equal(t, "3", r.Text) }},
		{decide.Type, func(r *decide.AdminResult) { require.Equal(t, "string", r.Text) }},
		{decide.Expiry, func(r *decide.AdminResult) {
			require.True(t, r.HasExpiry)
			require.Less(t, r.Expiry.Sub(begin), time.Minute+time.Second)
		}},
		{decide.Persist, func(r *decide.AdminResult) { require.True(t, r.Done) }},
	} {
		a := admin("k", step.op)
		two.call(t, a)
		require.NoError(t, a.Err)
		step.look(&a.Result)
	}
	half, ok := longdouble.Parse([]byte("0.5"))
	require.True(t, ok)
	a := count("k", 0, 0)
	a.Counter.Float = &counter.Floats{By: half, Lower: longdouble.Neg(longdouble.Max()), Upper: longdouble.Max()}
	a.Counter.Expiry = counter.Leave
	one.call(t, a)
	require.NoError(t, a.Err)
	require.Equal(t, [2]string{"3.5", "0.5"}, *a.Counted.Texts)

	gone := count("k", 9, 0)
	gone.Counter.By, gone.Counter.Expiry = 0, counter.Set
	gone.Counter.Float = a.Counter.Float
	two.call(t, gone)
	require.NoError(t, gone.Err)
	require.Nil(t, c.get([]byte("cs:k")), "an expiry that has passed removes the key")
}

// TestADeclinedCounterWritesNothing: a call above the limit costs the engine at most a read.
func TestADeclinedCounterWritesNothing(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	s.call(t, count("k", 1, s.Now()))
	written := c.ops.swaps
	for range 5 {
		a := count("k", 1, s.Now())
		s.call(t, a)
		require.NoError(t, a.Err)
		require.Equal(t, counter.Result{Value: 1, Denied: true}, a.Counted)
	}
	require.Equal(t, written, c.ops.swaps)
	window := count("none", 0, s.Now())
	s.call(t, window)
	require.Equal(t, counter.Result{Denied: true}, window.Counted)
	require.Nil(t, c.get([]byte("cs:none")))
}

// TestNoPolicyGuessesANumber: while the engine is unreachable the number of a counter is unknown,
// so the call fails under every policy for limiters.
func TestNoPolicyGuessesANumber(t *testing.T) {
	for _, policy := range []string{Closed, Opened, Local} {
		p, local := policiesOf(map[string]string{"": policy})
		a := count("k", 3, policyNow)
		p.answer(a, late)
		require.Equal(t, decide.Unavailable("the store does not answer: timeout"), a.Err, policy)
		require.Empty(t, *local)
	}
}

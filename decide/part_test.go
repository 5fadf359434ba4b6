package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// holding returns keys with so many units taken from a cell, a window and a bucket of five each,
// and with members in a lease set of two places.
func holding(t *testing.T, cells, units, tokens int64, members ...string) *keys {
	k := &keys{}
	require.NoError(t, k.ask(t, several(t, cells, units, tokens)))
	for _, m := range members {
		require.NoError(t, k.ask(t, withLease(several(t, 0, 0, 0), m)))
	}
	return k
}

// asking returns an ask of n units of each clause, and of a place.
func asking(t *testing.T, n int64) *decide.Ask {
	a := withLease(several(t, n, n, n), "m")
	a.Partial = true
	return a
}

// TestPartialGrantsTheLeast: every clause grants as much as the clause with the least can.
func TestPartialGrantsTheLeast(t *testing.T) {
	const never = limit.NoRetry
	for name, c := range map[string]struct {
		keys     *keys
		quantity int64
		refused  bool
		missing  int64
		left     [4]int64
		binding  limit.Decision
	}{
		"all":                {holding(t, 0, 0, 0), 5, false, 0, [4]int64{0, 0, 0, 1}, limit.Decision{Limit: 5, RetryAfter: never, ResetAfter: time.Minute}},
		"more than any has":  {holding(t, 0, 0, 0), 7, false, 2, [4]int64{0, 0, 0, 1}, limit.Decision{Refused: 2, Limit: 5, RetryAfter: never, ResetAfter: time.Minute}},
		"a cell has least":   {holding(t, 4, 2, 1), 4, false, 3, [4]int64{0, 2, 3, 1}, limit.Decision{Refused: 3, Limit: 5, RetryAfter: never, ResetAfter: time.Minute}},
		"a window has least": {holding(t, 1, 3, 2), 9, false, 7, [4]int64{2, 0, 1, 1}, limit.Decision{Refused: 7, Limit: 5, RetryAfter: never, ResetAfter: time.Minute}},
		"a bucket has least": {holding(t, 1, 2, 3), 3, false, 1, [4]int64{2, 1, 0, 1}, limit.Decision{Refused: 1, Limit: 5, RetryAfter: never, ResetAfter: time.Minute}},
		"one unit":           {holding(t, 4, 4, 4), 1, false, 0, [4]int64{0, 0, 0, 1}, limit.Decision{Limit: 5, RetryAfter: never, ResetAfter: time.Minute}},
		"a cell has none":    {holding(t, 5, 0, 0), 3, true, 3, [4]int64{0, 5, 5, 2}, limit.Decision{Refused: 3, Limit: 5, RetryAfter: 2 * time.Second, ResetAfter: 10 * time.Second}},
		"a window has none":  {holding(t, 0, 5, 0), 1, true, 1, [4]int64{5, 0, 5, 2}, limit.Decision{Refused: 1, Limit: 5, RetryAfter: 10 * time.Second, ResetAfter: 10 * time.Second}},
		"two have none":      {holding(t, 5, 0, 5), 2, true, 2, [4]int64{0, 5, 0, 2}, limit.Decision{Refused: 2, Limit: 5, RetryAfter: 2 * time.Second, ResetAfter: 10 * time.Second}},
		"no place":           {holding(t, 0, 0, 0, "a", "b"), 3, true, 3, [4]int64{5, 5, 5, 0}, limit.Decision{Refused: 3, Limit: 2, RetryAfter: time.Minute, ResetAfter: time.Minute}},
		"a place is held":    {holding(t, 3, 0, 0, "a", "m"), 3, false, 1, [4]int64{0, 3, 3, 0}, limit.Decision{Refused: 1, Limit: 5, RetryAfter: never, ResetAfter: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.keys.entries
			a := asking(t, c.quantity)
			require.NoError(t, c.keys.ask(t, a))
			require.Equal(t, c.refused, a.Refused)
			require.Equal(t, c.missing, a.Missing)
			require.Equal(t, c.quantity-c.missing, a.Granted())
			require.Equal(t, c.left, remaining(a))
			require.Equal(t, c.binding, a.Binding())
			require.Equal(t, !c.refused, c.keys.rounds.Changes)
			if c.refused {
				require.Equal(t, before, c.keys.entries)
			} else {
				for _, d := range a.Details {
					require.Zero(t, d.Refused)
					require.Equal(t, limit.NoRetry, d.RetryAfter)
				}
			}
			for i, want := range asking(t, c.quantity).Clauses {
				require.Equal(t, want, a.Clauses[i], "the calls are as they were")
			}
			require.Equal(t, c.left, remaining(looking(t, c.keys)), "and that is stored")
		})
	}
}

// looking returns a peek with the state of the keys.
func looking(t *testing.T, k *keys) *decide.Ask {
	a := withLease(several(t, 0, 0, 0), "m")
	a.Clauses[0].Peek = true
	require.NoError(t, k.ask(t, a))
	return a
}

// TestPartialOfNoUnits: a call with quantity 0, a refund and a peek ignore Partial.
func TestPartialOfNoUnits(t *testing.T) {
	k := holding(t, 2, 2, 2)
	a := asking(t, 0)
	a.Clauses = a.Clauses[:3]
	require.NoError(t, k.ask(t, a))
	require.Equal(t, []any{false, int64(0), [4]int64{3, 3, 3}}, []any{a.Refused, a.Missing, remaining(a)})
	a = asking(t, -1)
	require.NoError(t, k.ask(t, a))
	require.Equal(t, []any{false, int64(0), [4]int64{4, 4, 4, 1}}, []any{a.Refused, a.Missing, remaining(a)})
	a = asking(t, 5)
	a.Clauses[0].Peek = true
	require.NoError(t, k.ask(t, a))
	require.Equal(t, []any{true, int64(0), int64(1)}, []any{a.Refused, a.Missing, a.Binding().Refused})
}

func TestPartialTellsTheFirstError(t *testing.T) {
	text := entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte("x")}
	k := keys{entries: [4]entry.Entry{text}}
	require.ErrorIs(t, k.ask(t, asking(t, 3)), limit.ErrNotInteger)
	k.entries = [4]entry.Entry{{}, {}, text}
	require.ErrorIs(t, k.ask(t, asking(t, 3)), limit.ErrWrongType)
	k = *holding(t, 0, 0, 0, "a")
	a := asking(t, 9)
	a.Clauses[3].Lease.MaxMembers = 1
	require.ErrorIs(t, k.ask(t, a), limit.ErrTooManyMembers)
	require.False(t, k.rounds.Changes)
}

// TestPartialClauseByItself: after a race a clause takes as many units as the others did, or is
// refused.
func TestPartialClauseByItself(t *testing.T) {
	k := holding(t, 0, 3, 0)
	a := asking(t, 4)
	require.NoError(t, k.ask(t, a))
	require.Equal(t, int64(2), a.Granted())
	var p decide.Plan
	for i, want := range []int64{1, 0, 1, 1} {
		require.NoError(t, p.Clause(i, &k.entries[i], start, a))
		require.Equal(t, i != 1, a.Details[i].Allowed())
		require.Equal(t, want, a.Details[i].Remaining)
	}
	a.Refuse()
	require.Equal(t, int64(4), a.Binding().Refused)
}

// TestPartialOfOneClauseIsThatOfItsFamily: a Several of one clause has the same answer and stores
// the same.
func TestPartialOfOneClauseIsThatOfItsFamily(t *testing.T) {
	var granted, parts, refused int
	rapid.Check(t, func(rt *rapid.T) {
		asks, entries, now := drawSeveral(rt, t)
		one := asks[0]
		if one.Family == decide.Cell || one.Family == decide.Bucket && one.Bucket.Mode == tokenbucket.Debt {
			return // these have no PARTIAL
		}
		for n := int64(-2); n <= 7; n++ { // for each key, so that every run has all outcomes
			a := severalOf([]*decide.Ask{with(one, n)})
			a.Partial = true
			got := together(t, a, entries[:1], now)
			own := *one
			own.Window.Charge, own.Bucket.Charge = slidingwindow.Partial, tokenbucket.Partial
			answers, after := alone(t, []*decide.Ask{&own}, entries[:1], now)
			require.Equal(rt, answers[0], a.Binding())
			same(rt, after, got)
			switch {
			case a.Refused:
				refused++
			case a.Missing > 0:
				parts++
			default:
				granted++
			}
		}
	})
	require.NotZero(t, granted*parts*refused)
}

// TestPartialOfACellIsThatOfABucket: a cell has no PARTIAL, but a bucket with the same rate has the
// same result.
func TestPartialOfACellIsThatOfABucket(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var asCell, asBucket keys
		for range rapid.IntRange(1, 10).Draw(rt, "calls") {
			n := rapid.Int64Range(1, 8).Draw(rt, "quantity")
			a, b := several(t, n, n, n), several(t, n, n, n)
			a.Clauses, a.Details, a.Partial = a.Clauses[:1], a.Details[:1], true
			b.Clauses, b.Details, b.Partial = b.Clauses[2:], b.Details[2:], true
			require.NoError(rt, asCell.ask(t, a))
			require.NoError(rt, asBucket.ask(t, b))
			require.Equal(rt, b.Binding(), a.Binding())
		}
	})
}

// TestPartialTakesAFixedClauseWhole: a clause that is Fixed takes its own quantity, or the call is
// refused as for lack of a place. The others share what the least of them grants.
func TestPartialTakesAFixedClauseWhole(t *testing.T) {
	fixed := func(k *keys, calls, n int64) *decide.Ask {
		a := asking(t, n)
		a.Clauses[0].Fixed, a.Clauses[0].Quantity = true, calls
		require.NoError(t, k.ask(t, a))
		return a
	}
	a := fixed(holding(t, 0, 2, 0), 1, 9)
	require.False(t, a.Refused)
	require.Equal(t, []int64{6, 3}, []int64{a.Missing, a.Granted()})
	require.Equal(t, [4]int64{4, 0, 2, 1}, remaining(a))
	k := holding(t, 4, 0, 0)
	before := k.entries
	a = fixed(k, 2, 3)
	require.True(t, a.Refused)
	require.Equal(t, int64(3), a.Binding().Refused)
	require.Equal(t, before, k.entries)
}

// TestPartialIsTheLeastOfEach: every clause is charged like a single call for that many units, and
// not all clauses could have been charged one unit more. A Fixed clause takes its own quantity.
func TestPartialIsTheLeastOfEach(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		asks, entries, now := drawSeveral(rt, t)
		n := rapid.Int64Range(1, 7).Draw(rt, "units")
		counted := false
		fixed := make(map[*decide.Ask]bool)
		for _, one := range asks {
			if with(one, n); one.Family != decide.Lease && rapid.IntRange(0, 4).Draw(rt, "fixed") == 0 {
				with(one, rapid.Int64Range(0, 3).Draw(rt, "own units"))
				fixed[one] = true
			}
			counted = counted || one.Family != decide.Lease && !fixed[one]
		}
		a := severalOf(asks)
		for i, one := range asks {
			a.Clauses[i].Fixed = fixed[one]
		}
		a.Partial = true
		got := together(t, a, entries, now)
		passes := func(n int64) bool {
			for _, one := range asks {
				if !fixed[one] {
					with(one, n)
				}
			}
			answers, _ := alone(t, asks, entries, now)
			for _, d := range answers {
				if !d.Allowed() {
					return false
				}
			}
			return true
		}
		if a.Refused {
			require.Equal(rt, a.Units(), a.Missing)
			require.False(rt, passes(1))
			same(rt, entries, got)
			return
		}
		granted := a.Granted()
		require.True(rt, passes(granted))
		answers, after := alone(t, asks, entries, now)
		require.Equal(rt, answers, a.Details)
		same(rt, after, got)
		if counted && granted < n {
			require.False(rt, passes(granted+1))
		}
	})
}

// TestSeveralForced: every clause is charged, whatever its remaining units are.
func TestSeveralForced(t *testing.T) {
	k := holding(t, 4, 4, 4)
	forcing := func(n int64) *decide.Ask {
		a := several(t, n, n, n)
		a.Clauses[0].Force = true
		a.Clauses[1].Window.Charge, a.Clauses[2].Bucket.Charge = slidingwindow.Force, tokenbucket.Force
		require.NoError(t, k.ask(t, a))
		return a
	}
	a := forcing(1)
	require.False(t, a.Refused)
	require.Equal(t, limit.Decision{Limit: 5, RetryAfter: limit.NoRetry, ResetAfter: 10 * time.Second}, a.Binding())
	a = forcing(3)
	require.False(t, a.Refused)
	require.Equal(t, a.Details[2], a.Details[0], "a cell is overdrawn as a bucket is")
	require.Equal(t, limit.Decision{Limit: 5, RetryAfter: 8 * time.Second, ResetAfter: 16 * time.Second}, a.Details[0])
	require.Equal(t, limit.Decision{Limit: 5, RetryAfter: 10 * time.Second, ResetAfter: 16 * time.Second}, a.Binding())
	a = forcing(-8)
	require.Equal(t, [4]int64{5, 5, 5}, remaining(a), "it is no use to a refund")

	a = several(t, 6, 1, 1)
	a.Clauses[0].Force, a.Clauses[0].Peek = true, true
	require.NoError(t, k.ask(t, a))
	require.True(t, a.Refused, "nor to a peek")
	a = several(t, 1<<62, 1, 1)
	a.Clauses[0].Force = true
	require.ErrorIs(t, k.ask(t, a), limit.ErrOverflow)
	require.False(t, k.rounds.Changes)
}

// TestSeveralThatWaits: a bucket may promise tokens, but the other clauses must have room now.
func TestSeveralThatWaits(t *testing.T) {
	waiting := func(k *keys, quantity int64, wait time.Duration) *decide.Ask {
		a := withLease(several(t, 1, 1, quantity), "m")
		a.Clauses[2].Bucket.Waits, a.Clauses[2].Bucket.MaxWait = true, wait
		other := *a.Clauses[2].Bucket
		other.Quantity, other.MaxWait = 1, 0
		a.Clauses[3] = decide.Clause{Key: []byte("other"), Bucket: &other}
		require.NoError(t, k.ask(t, a))
		return a
	}
	k := holding(t, 0, 0, 4)
	a := waiting(k, 3, 4*time.Second)
	require.False(t, a.Refused)
	require.Equal(t, 4*time.Second, a.Details[2].RetryAfter)
	require.Equal(t, limit.NoRetry, a.Details[3].RetryAfter)
	require.Equal(t, limit.Decision{Limit: 5, RetryAfter: 4 * time.Second, ResetAfter: 14 * time.Second}, a.Binding(), "the longest wait")
	before := k.entries
	a = waiting(k, 1, 4*time.Second)
	require.True(t, a.Refused)
	require.Equal(t, limit.Decision{Refused: 1, Limit: 5, RetryAfter: 2 * time.Second, ResetAfter: 14 * time.Second}, a.Binding())
	require.Equal(t, before, k.entries)

	k = holding(t, 5, 0, 5)
	before = k.entries
	a = waiting(k, 1, time.Minute)
	require.True(t, a.Refused, "by the cell")
	require.Equal(t, []int64{1, 0, 0, 0}, []int64{a.Details[0].Refused, a.Details[1].Refused, a.Details[2].Refused, a.Details[3].Refused})
	require.Equal(t, 2*time.Second, a.Details[2].RetryAfter, "it would wait so long")
	require.Equal(t, limit.Decision{Refused: 1, Limit: 5, RetryAfter: 2 * time.Second, ResetAfter: 10 * time.Second}, a.Binding())
	require.Equal(t, before, k.entries)
}

func TestUnitsOfSeveral(t *testing.T) {
	a := &decide.Ask{Family: decide.Several, Clauses: []decide.Clause{{Lease: &concurrency.Call{}}}}
	require.Equal(t, int64(1), a.Units())
	a.Clauses = append(a.Clauses, several(t, 1, 2, 3).Clauses[1:]...)
	require.Equal(t, int64(2), a.Units())
}

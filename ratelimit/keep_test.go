package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
)

// class returns a change of a call that gives it the class called name.
func class(name string) func(*ratelimit.Call) {
	return func(c *ratelimit.Call) { c.Class = []byte(name) }
}

// keep returns a change of a call that has it keep k.
func keep(k clause.Keep) func(*ratelimit.Call) { return func(c *ratelimit.Call) { c.Keep = k } }

// withClasses returns e with classes.
func withClasses(e policy.Entry, classes string) policy.Entry {
	e.Classes = classes
	return e
}

// TestClassesLeaveTheirShare compares calls of several classes with a model, which asks for the remaining units
// before each call: the call passes if each clause has its quantity and the share of its limit that the class leaves.
func TestClassesLeaveTheirShare(t *testing.T) {
	effort.Alone(t)
	shares := map[string]int64{"all": 0, "some": 25, "half": 50, "whole": 100}
	for _, clauses := range []string{
		"CL 6 3 20", "SW 7 20", "SW 7 20 FIXED", "SW 7 20 LOG", "SW 7 20 BUCKETS 4", "SW 7 DAY", "TB 7 3 20", "TB 7 3 20 INTERVAL",
		"TB 7 3 20 INIT 2", "CC 5 30", "SW 9 20 TB 7 3 20", "SW 3 20 FIXED CALLS TB 7 3 20 CL 9 3 20 CC 6 30", "SW 0 20 FIXED",
	} {
		for _, boosted := range []bool{false, true} {
			t.Run(fmt.Sprint(clauses, boosted), func(t *testing.T) {
				entries := []policy.Entry{withClasses(main(t, clauses), "all 0% half 50% some 25% whole 100%")}
				if boosted {
					b := forKey(policy.Boost, "k")
					b.Factor, b.Until = 2500, limit.MaxInstant
					entries = append(entries, b)
				}
				f := open(t, entries...)
				rnd := rand.New(rand.NewPCG(5, uint64(len(clauses))))
				list := limits(t, clauses).Clauses
				for i := range effort.Steps(400, 40_000) {
					f.clock.Advance(time.Duration(rnd.Int64N(8e9)))
					f.store.Refresh()
					free := answers(t, f, quantity(0), member("looks"))
					name := []string{"all", "some", "half", "whole"}[rnd.IntN(4)]
					n := 1 + rnd.Int64N(4)
					m := []ratelimit.Mode{ratelimit.Whole, ratelimit.Whole, ratelimit.Peek, ratelimit.Partial, ratelimit.Force}[rnd.IntN(5)]
					if m == ratelimit.Partial && strings.Contains(clauses, "CC") {
						m = ratelimit.Whole // PARTIAL excludes CC
					}
					if strings.HasPrefix(clauses, "CC") {
						n = 1
					}
					want := expected(list, free, n, shares[name], m)
					// A share that the call names does the same as its class.
					as := class(name)
					if shares[name] > 0 && rnd.IntN(3) == 0 {
						as = keep(clause.Keep{Percent: shares[name]})
					}
					got := answers(t, f, quantity(n), mode(m), as, member(strconv.Itoa(i)))
					why := fmt.Sprintf("call %d: %d of class %s in mode %d: %+v, before %+v", i, n, name, m, got, free)
					for j := range want {
						require.Equal(t, want[j].Limit, got[j].Limit, why)
						require.Equal(t, want[j].Remaining, got[j].Remaining, why)
						require.True(t, m == ratelimit.Partial || want[j].Refused > 0 == (got[j].Refused > 0), why)
					}
				}
			})
		}
	}
}

// expected returns what calls answer, with times left out: one for n units whose class leaves a share in percent, before
// which looks have answered free. Refused is only 0 or 1.
func expected(list []policy.Clause, free []limit.Decision, n, share int64, m ratelimit.Mode) []limit.Decision {
	want := make([]limit.Decision, len(free))
	passes, granted := true, n
	units := func(j int, n int64) int64 {
		if w := list[j].Window; list[j].Lease != nil || w != nil && list[j].Calls {
			return min(n, 1)
		}
		return n
	}
	for j, d := range free {
		kept := (d.Limit*share + 99) / 100
		want[j] = limit.Decision{Limit: d.Limit, Remaining: d.Remaining}
		switch {
		case m == ratelimit.Force && d.Limit > 0: // only the limit 0 cannot be forced
			continue
		case m == ratelimit.Force:
			kept = 0
		}
		if units(j, n)+kept > d.Remaining {
			want[j].Refused, passes = 1, false
		}
		if units(j, 2) == 1 {
			if 1+kept > d.Remaining {
				granted = 0
			}
			continue
		}
		granted = max(0, min(granted, d.Remaining-kept))
	}
	if m == ratelimit.Partial {
		passes = granted > 0
	} else {
		granted = n
	}
	for j := range want {
		if passes && m != ratelimit.Peek {
			want[j].Remaining = max(0, want[j].Remaining-units(j, granted))
		}
	}
	return want
}

// answers returns the answers of the clauses to a call.
func answers(t *testing.T, f *front, with ...func(*ratelimit.Call)) []limit.Decision {
	t.Helper()
	a, err := f.decide("k", with...)
	require.NoError(t, err)
	if len(a.Details) == 0 {
		return []limit.Decision{*a.Decision}
	}
	return append([]limit.Decision{}, a.Details...)
}

func TestCallsThatCannotKeep(t *testing.T) {
	f := open(t, withClasses(main(t, "SW 9 20 TB 7 3 20"), "batch 30%"), named(t, "debt", "TB 7 3 20 DEBT"), named(t, "one", "CL 6 3 20"))
	_, err := f.decide("k", class("nosuch"))
	require.ErrorIs(t, err, ratelimit.ErrNoClass)
	_, err = f.decide("k", keep(clause.Keep{Units: 1}))
	require.ErrorIs(t, err, ratelimit.ErrKeepUnits)
	_, err = f.decide("k", keep(clause.Keep{Percent: 1}), func(c *ratelimit.Call) { c.Policy = []byte("debt") })
	require.ErrorIs(t, err, ratelimit.ErrKeepDebt)
	one := func(c *ratelimit.Call) { c.Policy = []byte("one") }
	require.EqualValues(t, 4, f.decided(t, "k", one, quantity(3), keep(clause.Keep{Units: 4})).Remaining)
	require.EqualValues(t, 1, f.decided(t, "k", one, keep(clause.Keep{Units: 4})).Refused)
}

// TestOverridesMakeNoCallAnError: an override may have limits that a policy with KEEP must not have. A bucket that
// lends tokens lends none to a call that keeps some, and units are kept of each clause.
func TestOverridesMakeNoCallAnError(t *testing.T) {
	lends := forKey(policy.Override, "k")
	lends.Limits = limits(t, "TB 7 7 7 DEBT")
	f := open(t, withClasses(main(t, "SW 9 20"), "batch 50%"), lends)
	require.EqualValues(t, 1, f.decided(t, "k", quantity(4), class("batch")).Refused)
	require.EqualValues(t, 4, f.decided(t, "k", quantity(3), class("batch")).Remaining)
	require.Zero(t, f.decided(t, "k", quantity(9)).Refused, "it lends 5 tokens")
	is := f.decided(t, "k", class("batch"))
	require.EqualValues(t, 1, is.Refused)
	require.Equal(t, 10*time.Second, is.RetryAfter, "5 tokens are owed, 1 is asked for, and 4 stay")
	require.EqualValues(t, 1, f.decided(t, "k", quantity(4), class("batch"), mode(ratelimit.Peek)).Refused)

	lends.Limits = limits(t, "SW 9 20 TB 5 1 1")
	f = open(t, main(t, "SW 9 20"), lends)
	a, err := f.decide("k", keep(clause.Keep{Units: 5}))
	require.NoError(t, err)
	require.EqualValues(t, 1, a.Decision.Refused)
	require.Zero(t, a.Details[0].Refused)
	require.EqualValues(t, 1, a.Details[1].Refused)
}

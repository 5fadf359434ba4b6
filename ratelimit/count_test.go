package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
)

// counting returns e with the flag Count.
func counting(e policy.Entry) policy.Entry {
	e.Count = true
	return e
}

// TestCountIsThatOfEnvoy: fixed windows with Count decide as the rules of envoyproxy/ratelimit say, which are a
// sum for each key and window: the hits are added always, and the call is over the limit if the sum is.
func TestCountIsThatOfEnvoy(t *testing.T) {
	effort.Alone(t)
	const most, seconds = 7, 60
	f := open(t, counting(main(t, "SW 7 60 FIXED")))
	rnd := rand.New(rand.NewPCG(1, 2))
	sums := map[string]int64{}
	window := int64(0)
	for i := range effort.Steps(20_000, 1_000_000) {
		f.clock.Advance(time.Duration(rnd.Int64N(3e9)))
		f.store.Refresh()
		now := int64(f.store.Now())
		if w := now / (seconds * 1e9); w != window {
			window = w
			clear(sums)
		}
		key := string(rune('a' + rnd.IntN(3)))
		hits := rnd.Int64N(4)
		if rnd.IntN(50) == 0 {
			hits = rnd.Int64N(1 << 40)
		}
		sums[key] += hits
		sum := sums[key]
		want := limit.Decision{Limit: most, Remaining: max(0, most-sum), RetryAfter: limit.NoRetry}
		if sum > 0 {
			want.ResetAfter = time.Duration((window+1)*seconds*1e9 - now)
		}
		if sum > most {
			if want.Refused = 1; hits <= most {
				want.RetryAfter = want.ResetAfter
			}
		}
		require.Equal(t, want, f.decided(t, key, quantity(hits)), "call %d: %d hits at %d", i, hits, sum)
	}
}

// TestCountForces: a policy with Count decides as one without, and charges what that one denies as a call with
// FORCE does. The other policy is the model: it is asked first, and forced if it denies the call.
func TestCountForces(t *testing.T) {
	effort.Alone(t)
	for _, clauses := range []string{
		"CL 6 3 20", "SW 7 20", "SW 7 20 FIXED", "SW 7 20 LOG", "SW 7 20 BUCKETS 4", "SW 8 20 BUCKETS 4 EVEN", "SW 7 DAY",
		"TB 7 3 20", "TB 7 3 20 INTERVAL", "TB 7 3 20 DEBT", "TB 7 3 20 INIT 2", "SW 0 20 FIXED", "TB 0 3 20",
		"SW 9 20 TB 7 3 20", "SW 3 20 FIXED CALLS TB 7 3 20 CL 9 3 20",
	} {
		t.Run(clauses, func(t *testing.T) {
			plain := named(t, "plain", clauses)
			f := open(t, counting(main(t, clauses)), plain)
			rnd := rand.New(rand.NewPCG(3, uint64(len(clauses))))
			as := func(name string, n int64, m ratelimit.Mode) (a ratelimit.Answer) {
				call := func(c *ratelimit.Call) { c.Policy, c.Quantity, c.Mode = []byte(name), n, m }
				a, err := f.decide("k", call)
				require.NoError(t, err)
				is := *a.Decision
				a.Decision, a.Details = &is, append([]limit.Decision{}, a.Details...)
				return a
			}
			for i := range effort.Steps(500, 70_000) {
				f.clock.Advance(time.Duration(rnd.Int64N(6e9)))
				f.store.Refresh()
				n, m := rnd.Int64N(6), ratelimit.Whole
				switch rnd.IntN(12) {
				case 0:
					n = -n
				case 1:
					m = ratelimit.Force
				case 2:
					m = ratelimit.Peek
				}
				want := as("plain", n, m)
				if m == ratelimit.Whole && n > 0 && want.Decision.Refused > 0 {
					forced := as("plain", n, ratelimit.Force)
					want = charged(want, forced)
				}
				require.Equal(t, want, as("api", n, m), "call %d: %d in mode %d", i, n, m)
			}
		})
	}
}

// charged returns the answer to a call that is denied and charged, from those to the call without a charge and
// with FORCE.
func charged(denied, forced ratelimit.Answer) ratelimit.Answer {
	one := func(denied, forced limit.Decision) limit.Decision {
		if forced.Refused = denied.Refused; denied.RetryAfter == limit.NoRetry || forced.RetryAfter == limit.NoRetry {
			forced.RetryAfter = denied.RetryAfter
		}
		return forced
	}
	if len(denied.Details) == 0 {
		is := one(*denied.Decision, *forced.Decision)
		return ratelimit.Answer{Decision: &is, Details: denied.Details}
	}
	whole := limit.Decision{Refused: 1, RetryAfter: limit.NoRetry, Remaining: -1}
	never := false
	for i := range denied.Details {
		is := one(denied.Details[i], forced.Details[i])
		denied.Details[i] = is
		whole.ResetAfter = max(whole.ResetAfter, is.ResetAfter)
		if is.Refused == 0 {
			continue
		}
		if whole.Remaining < 0 || is.Remaining < whole.Remaining {
			whole.Limit, whole.Remaining = is.Limit, is.Remaining
		}
		whole.RetryAfter = max(whole.RetryAfter, is.RetryAfter)
		never = never || is.RetryAfter == limit.NoRetry
	}
	if never {
		whole.RetryAfter = limit.NoRetry
	}
	return ratelimit.Answer{Decision: &whole, Details: denied.Details}
}

// TestNoLimitKeepsNothing: a limit that is NONE passes all calls and leaves the key alone, whatever it holds.
func TestNoLimitKeepsNothing(t *testing.T) {
	f := open(t, main(t, "NONE"))
	for _, m := range []ratelimit.Mode{ratelimit.Whole, ratelimit.Peek, ratelimit.Partial, ratelimit.Force, ratelimit.Wait, ratelimit.Block} {
		for _, n := range []int64{-1 << 62, -1, 0, 1, 1 << 62} {
			is := f.decided(t, "k", quantity(n), mode(m))
			require.Equal(t, limit.Decision{Limit: 4294967295, Remaining: 4294967295, RetryAfter: limit.NoRetry}, is, "%d in mode %d", n, m)
		}
	}
	require.Zero(t, f.store.Len(0))
}

// TestDeniedChargesAllocateNothing: nor do calls without a limit.
func TestDeniedChargesAllocateNothing(t *testing.T) {
	if effort.RaceDetector {
		t.Skip("the race detector allocates")
	}
	for _, clauses := range []string{"CL 6 3 20", "SW 7 20 FIXED", "TB 7 3 20", "SW 9 20 TB 7 3 20", "NONE"} {
		f := open(t, counting(main(t, clauses)))
		l, of := ratelimit.Lookup{}, f.call("k")
		call := func() {
			l.Call = of
			if f.Find(&l) != nil {
				panic("there is a policy")
			}
			_, _ = f.Decide(&l, &f.ask)
			f.EndBatch(start)
		}
		for range 10 {
			call()
		}
		require.Zero(t, testing.AllocsPerRun(100, call), clauses)
	}
}

// TestSumsOfSeveralPolicies: calls under several policies, of which some have Count, some are shadows and one has no
// limit, charge what a model says that has only a sum for each policy.
func TestSumsOfSeveralPolicies(t *testing.T) {
	effort.Alone(t)
	type rule struct {
		name          string
		most          int64
		count, shadow bool
	}
	rules := []rule{
		{"count", 5, true, false}, {"plain", 4, false, false}, {"both", 3, true, true}, {"shadow", 2, false, true}, {"other", 6, true, false}, {"none", 1 << 40, false, false},
	}
	var entries []policy.Entry
	for _, r := range rules {
		e := named(t, r.name, fmt.Sprintf("SW %d 60 FIXED", r.most))
		if r.name == "none" {
			e = named(t, r.name, "NONE")
		}
		e.Count, e.Shadow = r.count, r.shadow
		entries = append(entries, e)
	}
	f := open(t, entries...)
	rnd := rand.New(rand.NewPCG(5, 6))
	sums, window := make([]int64, len(rules)), limit.Instant(0)
	for i := range effort.Steps(5_000, 1_000_000) {
		f.clock.Advance(time.Duration(rnd.Int64N(20e9)))
		f.store.Refresh()
		if w := f.store.Now() / 60e9; w != window {
			window = w
			clear(sums)
		}
		var parts []ratelimit.Part
		order := rnd.Perm(len(rules))[:1+rnd.IntN(len(rules))]
		denied := false
		for _, j := range order {
			n := rnd.Int64N(4)
			parts = append(parts, f.parts([]string{rules[j].name}, quantity(n))...)
			denied = denied || !rules[j].shadow && sums[j]+n > rules[j].most // even if n is 0
		}
		for k, j := range order {
			n, r := parts[k].Quantity, &rules[j]
			if r.count || !denied && (!r.shadow || sums[j]+n <= r.most) {
				sums[j] += n
			}
		}
		looks := !slices.ContainsFunc(parts, func(p ratelimit.Part) bool { return p.Quantity > 0 })
		is := f.all(t, parts)
		if !looks {
			require.Equal(t, denied, is.Refused > 0, "call %d", i)
		}
		for j, r := range rules {
			left := f.all(t, f.parts([]string{r.name}, quantity(0))).Remaining
			if r.name != "none" {
				require.Equal(t, max(0, r.most-sums[j]), left, "call %d: %s has %d of %d", i, r.name, sums[j], r.most)
			}
		}
	}
}

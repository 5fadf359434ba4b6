package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
)

// TestBans compares calls under a policy with BAN with a model: calls under the same policy without it, as long as the
// model knows of no ban, and a list of the denials of each key.
func TestBans(t *testing.T) {
	effort.Alone(t)
	for _, clauses := range []string{"SW 3 20 FIXED", "TB 3 1 7", "CL 2 3 20", "SW 9 20 TB 4 3 20", "SW 2 20 FIXED CALLS TB 7 3 20"} {
		t.Run(clauses, func(t *testing.T) {
			exempt := forKey(policy.Exempt, "free*")
			exempt.Until = limit.MaxInstant
			f := open(t, main(t, clauses+" BAN 3 30 10 FACTOR 3 MAX 100"), exempt, named(t, "plain", clauses))
			rnd := rand.New(rand.NewPCG(8, uint64(len(clauses))))
			type banned struct {
				denials []limit.Instant
				until   limit.Instant
				level   int
			}
			model := map[string]*banned{}
			bans := 0
			for i := range effort.Steps(4_000, 200_000) {
				f.clock.Advance(time.Duration(rnd.Int64N([]int64{90e9, 20e9, 5e9, 1e9}[min(3, rnd.IntN(20))])))
				f.store.Refresh()
				now := f.store.Now()
				key := []string{"a", "b", "c", "free"}[rnd.IntN(4)]
				n := rnd.Int64N(7) - 1
				m := []ratelimit.Mode{ratelimit.Whole, ratelimit.Whole, ratelimit.Whole, ratelimit.Peek, ratelimit.Partial, ratelimit.Force}[rnd.IntN(6)]
				is := model[key]
				if is == nil {
					is = new(banned)
					model[key] = is
				}
				got := f.decided(t, key, quantity(n), mode(m))
				why := fmt.Sprintf("call %d: %d of %s in mode %d at %v: %+v", i, n, key, m, now.Sub(start), got)
				if is.until > now && n >= 0 {
					require.EqualValues(t, 1, got.Refused, why)
					require.Equal(t, is.until.Sub(now), got.RetryAfter, why)
					require.Zero(t, got.Remaining, why)
					continue
				}
				want := f.decided(t, key, quantity(n), mode(m), func(c *ratelimit.Call) { c.Policy = []byte("plain") })
				if key == "free" {
					want.Refused, want.RetryAfter = 0, limit.NoRetry
				}
				denied := n > 0 && m != ratelimit.Peek && want.Refused > 0 && (m != ratelimit.Partial || want.Refused == n)
				if denied {
					if len(is.denials) > 0 && now.Sub(is.denials[0]) >= 30*time.Second {
						is.denials = nil
					}
					is.denials = append(is.denials, now)
				}
				if len(is.denials) == 3 {
					is.level = max(0, is.level-int(max(0, now.Sub(is.until))/(100*time.Second)))
					lasts := []time.Duration{10, 30, 90, 100}[is.level] * time.Second
					is.level = min(3, is.level+1)
					is.denials, is.until = nil, now.Add(lasts)
					if want.RetryAfter != limit.NoRetry {
						want.RetryAfter = max(want.RetryAfter, lasts)
					}
					want.ResetAfter = max(want.ResetAfter, lasts)
					bans++
				}
				require.Equal(t, want, got, why)
			}
			require.Greater(t, bans, 20)
		})
	}
}

// TestBansOfSeveralPolicies: a denial counts for the policies whose limits deny the call.
func TestBansOfSeveralPolicies(t *testing.T) {
	f := open(t, named(t, "one", "TB 1 1 100 BAN 2 60 600"), named(t, "two", "TB 9 1 100 BAN 1 60 600"))
	all := func(n int64) limit.Decision { return f.all(t, f.parts([]string{"one", "two"}, quantity(n))) }
	require.Zero(t, all(1).Refused)
	require.Equal(t, 100*time.Second, all(1).RetryAfter)
	require.Equal(t, 600*time.Second, all(1).RetryAfter)
	require.Equal(t, 600*time.Second, all(0).RetryAfter, "a ban denies calls that look")
	require.EqualValues(t, 7, f.anyOf(t, f.parts([]string{"one", "two"})).Remaining)
	require.EqualValues(t, 1, f.anyOf(t, f.parts([]string{"one", "two"}, quantity(8))).Refused)
	is := f.anyOf(t, f.parts([]string{"one", "two"}))
	require.EqualValues(t, 1, is.Refused, "both are banned")
	require.Equal(t, 600*time.Second, is.RetryAfter)
}

package ratelimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
)

// named returns the entry of a policy called name.
func named(t testing.TB, name, clauses string) policy.Entry {
	t.Helper()
	return policy.Entry{Policy: name, Limits: limits(t, clauses)}
}

// parts returns the parts of a call about the key k under the policies called names, changed by with.
func (f *front) parts(names []string, with ...func(*ratelimit.Call)) (parts []ratelimit.Part) {
	for _, name := range names {
		c := f.call("k")
		c.Policy = []byte(name)
		for _, w := range with {
			w(&c)
		}
		parts = append(parts, ratelimit.Part{Lookup: ratelimit.Lookup{Call: c}})
	}
	return parts
}

// all and anyOf decide a call of parts, and return the decision on it.
func (f *front) all(t *testing.T, parts []ratelimit.Part) limit.Decision {
	t.Helper()
	_, err := f.FindAll(parts)
	require.NoError(t, err)
	d, _, err := f.All(parts, &f.ask)
	require.NoError(t, err)
	return *d
}

func (f *front) anyOf(t *testing.T, parts []ratelimit.Part) limit.Decision {
	t.Helper()
	_, err := f.FindAll(parts)
	require.NoError(t, err)
	d, _, err := f.Any(parts)
	require.NoError(t, err)
	return *d
}

// counted returns how often the policy was counted as allowed and denied.
func (f *front) counted(name string) [2]int64 {
	n := f.table.Policy([]byte(name)).Counts
	return [2]int64{n.Allowed.Load(), n.Denied.Load()}
}

// TestAllOrNone: a call under several policies charges all or none, and each policy counts its own
// denials.
func TestAllOrNone(t *testing.T) {
	f := open(t, named(t, "a", "SW 3 60 FIXED"), named(t, "b", "TB 2 1 60 SW 9 60 FIXED"))
	both := []string{"b", "a"}
	require.Equal(t, int64(1), f.all(t, f.parts(both)).Remaining)
	require.Zero(t, f.all(t, f.parts(both)).Remaining)
	for range 3 {
		parts := f.parts(both)
		d := f.all(t, parts)
		require.Equal(t, limit.Decision{Refused: 1, Limit: 2, RetryAfter: time.Minute, ResetAfter: 2 * time.Minute}, d)
		require.Equal(t, []int64{1, 0}, []int64{parts[0].Details[0].Refused, parts[0].Details[1].Refused})
		require.Equal(t, int64(1), parts[1].Details[0].Remaining)
	}
	require.Equal(t, [2]int64{2, 0}, f.counted("a"))
	require.Equal(t, [2]int64{2, 3}, f.counted("b"))
	f.EndBatch(f.store.Now())
	seen := f.keys.Seen(hotkeys.Denied, start)
	require.Len(t, seen.Keys, 1, "the clause that denies")
	require.Equal(t, "b:k", seen.Keys[0].Key)
	f.clock.Advance(time.Minute)
	f.store.Refresh()
	require.Equal(t, int64(1), f.all(t, f.parts(both, quantity(2), mode(ratelimit.Partial))).Refused)
	require.Equal(t, [2]int64{3, 0}, f.counted("a"), "it could have granted all")
	require.Equal(t, [2]int64{2, 4}, f.counted("b"))
}

// TestTheFirstThatPasses: the policies are tried in their order, and those after the one that passes
// are left alone.
func TestTheFirstThatPasses(t *testing.T) {
	f := open(t, named(t, "a", "SW 1 60 FIXED"), named(t, "b", "SW 1 30 FIXED"), named(t, "c", "SW 1 60 FIXED"))
	order := []string{"a", "b", "c"}
	for i := range order {
		parts := f.parts(order)
		require.Zero(t, f.anyOf(t, parts).Refused)
		for j := range parts {
			require.Equal(t, j <= i, parts[j].Details != nil)
		}
	}
	d := f.anyOf(t, f.parts(order))
	require.Equal(t, int64(1), d.Refused)
	require.Equal(t, f.anyOf(t, f.parts(order[1:2])), d, "b passes first")
	require.Equal(t, [2]int64{1, 3}, f.counted("a"))
	require.Equal(t, [2]int64{1, 3}, f.counted("b"))
	require.Equal(t, [2]int64{1, 1}, f.counted("c"))
	never := f.anyOf(t, f.parts(order, quantity(2)))
	require.Equal(t, limit.NoRetry, never.RetryAfter)
	require.Equal(t, 3, f.store.Len(0))
}

// TestPartsThatCannotBeDecided: an error says which part it is about, and nothing is charged.
func TestPartsThatCannotBeDecided(t *testing.T) {
	f := open(t, named(t, "a", "SW 1 60 FIXED"), named(t, "lease", "CC 1 60"), named(t, "debt", "TB 1 1 60 DEBT"),
		named(t, "ten", "SW 1 1 SW 1 1 SW 1 1 SW 1 1 SW 1 1 SW 1 1 SW 1 1 SW 1 1 SW 1 1 SW 1 1"))
	at, err := f.FindAll(f.parts([]string{"a", "ten", "none"}))
	require.Equal(t, 2, at)
	require.ErrorIs(t, err, ratelimit.ErrNoPolicy)
	at, err = f.FindAll(f.parts([]string{"a", "ten", "ten", "ten", "ten", "ten", "ten", "lease", "ten"}))
	require.Equal(t, 8, at)
	require.ErrorIs(t, err, ratelimit.ErrClauses)
	for _, c := range []struct {
		second string
		with   func(*ratelimit.Call)
		want   error
	}{
		{"lease", quantity(1), ratelimit.ErrNoMember},
		{"debt", mode(ratelimit.Partial), ratelimit.ErrPartial},
	} {
		parts := f.parts([]string{"a", c.second}, c.with)
		_, err := f.FindAll(parts)
		require.NoError(t, err)
		_, at, err := f.All(parts, &f.ask)
		require.Equal(t, 1, at)
		require.ErrorIs(t, err, c.want)
		_, at, err = f.Any(parts)
		require.Equal(t, 1, at)
		require.ErrorIs(t, err, c.want, "it is found although the first policy would pass")
	}
	require.Zero(t, f.store.Len(0))
}

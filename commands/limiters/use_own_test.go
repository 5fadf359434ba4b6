package limiters

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/policy"
)

// ownOf returns the limits of the call that line is, with those in kept.
func ownOf(t *testing.T, kept *ownLimits, line string) *policy.Limits {
	t.Helper()
	var u useCall
	require.Empty(t, u.parse(useWords(line), new(quantities)), line)
	require.Empty(t, u.setOwn(kept), line)
	return u.Own
}

// TestOwnLimitsAreRemembered: calls with the same numbers share their limits, and a bounded number of them is kept,
// however many numbers clients send.
func TestOwnLimitsAreRemembered(t *testing.T) {
	var kept ownLimits
	require.Nil(t, ownOf(t, &kept, "api k"))
	require.Nil(t, kept)
	first := ownOf(t, &kept, "rls.a k LIMIT 5 60")
	require.Equal(t, policy.FixedWindowMillis(5, 60_000), first)
	require.Same(t, first, ownOf(t, &kept, "rls.b j 3 LIMIT 5 60"))
	require.Same(t, first, ownOf(t, &kept, "rls.a k LIMIT 5 60000 MS"))
	for _, other := range []string{"LIMIT 5 60 MS", "LIMIT 60 5", "LIMIT 5 61", "LIMIT 6 60"} {
		require.NotEqual(t, first.Clauses, ownOf(t, &kept, "rls.a k "+other).Clauses, other)
	}
	for i := range 10 * maxOwnLimits {
		is := ownOf(t, &kept, fmt.Sprintf("rls.a k LIMIT %d 60", i))
		require.Equal(t, int64(i), is.Clauses[0].Window.Limit)
		require.LessOrEqual(t, len(kept), maxOwnLimits)
		require.Same(t, is, ownOf(t, &kept, fmt.Sprintf("rls.a k LIMIT %d 60", i)))
	}
}

// TestOwnLimitsOfWrongCallsAreNotRemembered: an error leaves what is kept.
func TestOwnLimitsOfWrongCallsAreNotRemembered(t *testing.T) {
	for _, line := range []string{"api k LIMIT 5 60", "rls.a:b k LIMIT 5 60", "rls.a k LIMIT -1 60", "rls.a k LIMIT 5 0", "rls.a k LIMIT 5 2305843010", "rls.a k LIMIT _ _"} {
		var (
			u    useCall
			kept ownLimits
		)
		require.Empty(t, u.parse(useWords(line), new(quantities)), line)
		require.NotEmpty(t, u.setOwn(&kept), line)
		require.Nil(t, u.Own, line)
		require.Empty(t, kept, line)
	}
}

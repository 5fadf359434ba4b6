package policy_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/slidingwindow"
)

// TestMadeLimitsAreThoseOfWords: limits made of numbers equal those of the words.
func TestMadeLimitsAreThoseOfWords(t *testing.T) {
	for words, made := range map[string]*policy.Limits{
		"SW 0 1 FIXED":                                         policy.FixedWindow(0, 1),
		"SW 4294967295 31536000 FIXED":                         policy.FixedWindow(4294967295, 31536000),
		"SW 5 60 FIXED ANCHOR FIRST":                           policy.FixedWindowFromFirst(5, 60),
		"SW 9223372036854775807 2305843009 FIXED ANCHOR FIRST": policy.FixedWindowFromFirst(math.MaxInt64, int64(slidingwindow.MaxWindow/time.Second)),
		"NONE": policy.Unlimited(),
	} {
		var list [][]byte
		for w := range strings.FieldsSeq(words) {
			list = append(list, []byte(w))
		}
		parsed, err := policy.ParseLimits(list, false, policy.Bounds{})
		require.Empty(t, err)
		require.Equal(t, parsed, made)
		require.Equal(t, []string{words}, made.Text)
	}
	require.Equal(t, policy.FixedWindow(7, 60).Clauses[0].Window.Window, policy.FixedWindowMillis(7, 60_000).Clauses[0].Window.Window)
	require.Equal(t, []string{"SW 7 60000 FIXED"}, policy.FixedWindowMillis(7, 60_000).Text)
	require.Panics(t, func() { policy.FixedWindowMillis(1, 0) })
	require.Panics(t, func() { policy.FixedWindow(-1, 1) })
	require.Panics(t, func() { policy.FixedWindow(1, 0) })
}

package pubsub

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/glob"
)

// TestPatternsHaveABudget: the cost of a hostile pattern is bounded, and within the budget the
// result is that of the matcher without a budget.
func TestPatternsHaveABudget(t *testing.T) {
	pattern := append(append([]byte("*"), bytes.Repeat([]byte("a"), 500)...), "b*a"...)
	name := bytes.Repeat([]byte("a"), maxChannel)
	steps := publishSteps
	require.False(t, glob.MatchWithin(pattern, name, &steps))
	require.LessOrEqual(t, steps, 0)
	rapid.Check(t, func(t *rapid.T) {
		p := []byte(rapid.StringMatching(`[ab*?\[\]^\\-]{0,12}`).Draw(t, "pattern"))
		s := []byte(rapid.StringMatching(`[ab\]^-]{0,12}`).Draw(t, "name"))
		steps := 64 + (glob.InnerLength(p)+4)*(len(s)+len(p)+1)
		require.Equal(t, glob.Match(p, s), glob.MatchWithin(p, s, &steps))
		require.Positive(t, steps)
	})
}

package pattern_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/lua/pattern"
)

// TestCapturesAreTextsAndPlaces: each row is a pattern, a subject, the end of the match at its
// beginning, and the captures. A position capture is a number.
func TestCapturesAreTextsAndPlaces(t *testing.T) {
	for _, row := range []struct {
		pattern, subject string
		end              int
		captures         []any
	}{
		{"a*", "aaab", 3, []any{"aaa"}},
		{"a-b", "aaab", 4, []any{"aaab"}},
		{"b", "aaab", -1, nil},
		{"(%w+):(%d+)", "user:17", 7, []any{"user", "17"}},
		{"()a()", "a", 1, []any{1, 2}},
		{"(a)%1", "aa", 2, []any{"a"}},
		{"%b()x", "(())x", 5, []any{"(())x"}},
		{"[^%s]+$", "ab c", -1, nil},
		{"%f[a]a", "a", 1, []any{"a"}},
	} {
		m := &pattern.Matcher{Subject: row.subject, Pattern: row.pattern, Steps: 1000}
		end, err := m.Match(0, 0)
		require.NoError(t, err, row.pattern)
		require.Equal(t, row.end, end, row.pattern)
		for i, want := range row.captures {
			text, place, err := m.Capture(i, 0, end)
			require.NoError(t, err, row.pattern)
			if place > 0 {
				require.Equal(t, want, place, row.pattern)
			} else {
				require.Equal(t, want, text, row.pattern)
			}
		}
	}
}

// TestMatchKeepsToItsSteps: for every pattern a match ends when its steps are used up, or when it
// is stopped.
func TestMatchKeepsToItsSteps(t *testing.T) {
	subject := make([]byte, 3000)
	m := &pattern.Matcher{Subject: string(subject), Pattern: ".-.-.-.-.-b", Steps: 100_000}
	_, err := m.Match(0, 0)
	require.ErrorIs(t, err, pattern.ErrBudget)
	require.Negative(t, m.Steps)

	asked := 0
	m = &pattern.Matcher{Subject: string(subject), Pattern: ".-.-.-.-.-b", Steps: 1 << 40, Poll: func() bool { asked++; return asked == 3 }}
	_, err = m.Match(0, 0)
	require.ErrorIs(t, err, pattern.ErrBudget)
	require.Equal(t, 3, asked)
}

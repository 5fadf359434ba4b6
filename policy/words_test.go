package policy_test

import (
	"bytes"

	"github.com/cellserver/cellserver/policy"
	"github.com/stretchr/testify/require"
)

func words(text string) [][]byte { return bytes.Fields([]byte(text)) }

// limitsOf parses valid clauses.
func limitsOf(t require.TestingT, text string) *policy.Limits {
	l, err := policy.ParseLimits(words(text), false, policy.Bounds{})
	require.Empty(t, string(err))
	return l
}

package policy_test

import (
	"strings"
	"testing"

	"github.com/cellserver/cellserver/policy"
	"github.com/stretchr/testify/require"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "api", "API_v2.0-beta", "0", "-", ".", strings.Repeat("n", 64)} {
		require.NoError(t, policy.CheckName([]byte(name)), name)
	}
	for _, name := range []string{"", strings.Repeat("n", 65), "a:b", "a b", "a#", "a/b", "a*", "ä", "a\x00", "\xff"} {
		require.ErrorIs(t, policy.CheckName([]byte(name)), policy.ErrName, name)
	}
}

func TestCheckPattern(t *testing.T) {
	for _, pattern := range []string{"a", "*", "acme*", "a*b", "\x00\xff", strings.Repeat("p", 1024)} {
		require.NoError(t, policy.CheckPattern([]byte(pattern)), pattern)
	}
	for _, pattern := range []string{"", strings.Repeat("p", 1025)} {
		require.ErrorIs(t, policy.CheckPattern([]byte(pattern)), policy.ErrPattern)
	}
}

func TestCheckKey(t *testing.T) {
	for _, key := range []string{"", "acme", "acme#", "#", "2", "acme2", "acme#0", "acme#1", "acme#01", "acme#2x", "acme#-2", "acme#2 ", "acme#02", "acme#17", "acme#20", "acme#100", "acme#99999999999999999999999", "acme16"} {
		require.NoError(t, policy.CheckKey([]byte(key)), key)
	}
	for _, key := range []string{"acme#2", "#2", "acme#9", "#10", "acme#10", "acme##16", "acme#1#2", "acme#15"} {
		require.ErrorIs(t, policy.CheckKey([]byte(key)), policy.ErrKey, key)
	}
}

func TestStateKeys(t *testing.T) {
	key := func(name, key string, i int, candidate bool) string {
		return string(policy.AppendStateKey([]byte("> "), []byte(name), []byte(key), i, candidate))
	}
	require.Equal(t, "> api:acme", key("api", "acme", 1, false))
	require.Equal(t, "> api:acme#2", key("api", "acme", 2, false))
	require.Equal(t, "> api:acme#16", key("api", "acme", 16, false))
	require.Equal(t, "> api#try:acme", key("api", "acme", 1, true))
	require.Equal(t, "> api#try:acme#3", key("api", "acme", 3, true))
	require.Equal(t, "> api:", key("api", "", 1, false))
}

// TestStateKeysDiffer: no two of policy, key, clause and candidate share state, of keys that
// CheckKey accepts.
func TestStateKeysDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"a", "a.", "a-try", "try"} {
		for _, k := range []string{"", ":", "b", "try:b", "#try:b", "b:b", "b#", "b##", "b#1", "b#2", "#try:b#1", "b#16", "b#02"} {
			if policy.CheckKey([]byte(k)) != nil {
				continue
			}
			for i := 1; i <= policy.MaxClauses; i++ {
				for _, candidate := range []bool{false, true} {
					state := string(policy.AppendStateKey(nil, []byte(name), []byte(k), i, candidate))
					require.False(t, seen[state], state)
					seen[state] = true
				}
			}
		}
	}
}

package policies_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEntriesThatHaveEndedAreNotShown: entries that have ended are not shown, although they stay
// in memory for up to a minute.
func TestEntriesThatHaveEndedAreNotShown(t *testing.T) {
	n := newNode(t)
	require.Equal(t, ok, n.do("RL.POLICY", "SET", "api", "LIMITS", "TB", "1", "1", "60"))
	before := n.do("RL.POLICY", "GET", "api")
	require.Equal(t, ok, n.do("RL.OVERRIDE", "SET", "api", "a", "EX", "1", "LIMITS", "TB", "2", "1", "60"))
	require.Equal(t, ok, n.do("RL.BLOCK", "api", "b", "EX", "1"))
	const text = "policies: {api: {limits: [TB 1 1 60]}}"
	require.Contains(t, n.do("RL.POLICY", "DIFF", text), "- api a\n")
	require.Contains(t, n.do("RL.OVERRIDE", "LIST", "api"), "$1\r\na\r\n")

	n.Server().Clock.Advance(time.Second)
	require.Equal(t, "*0\r\n", n.do("RL.OVERRIDE", "LIST", "api"))
	require.Equal(t, before, n.do("RL.POLICY", "GET", "api"))
	require.NotContains(t, n.do("RL.POLICY", "DUMP"), "overrides")
	require.Equal(t, "$0\r\n\r\n", n.do("RL.POLICY", "DIFF", text))
	require.Equal(t, ":0\r\n", n.do("RL.UNBLOCK", "api", "b"), "it is not there any more")
}

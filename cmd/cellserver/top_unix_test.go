//go:build real && unix

package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTopPrintsWhatAServerSays: top prints the verdict, the denied key and its group, over the
// Redis protocol, and an error for a user without the permission.
func TestTopPrintsWhatAServerSays(t *testing.T) {
	p := startDaemon(t, "--dir", t.TempDir())
	c, r := p.dial()
	say(t, c, r, "ACL SETUSER low on >secret ~* +get", "+OK")
	for i := range 40 {
		_, err := ask(r, c, "CL.THROTTLE api:acme 0 1 60")
		require.NoError(t, err, i)
	}
	host, port, err := net.SplitHostPort(p.addr)
	require.NoError(t, err)
	t.Setenv("REDISCLI_AUTH", "")
	var text strings.Builder
	require.Eventually(t, func() bool {
		text.Reset()
		require.NoError(t, showTop([]string{"-h", host, "-p", port, "--once"}, &text))
		return strings.Contains(text.String(), "api:acme") && strings.Contains(text.String(), "  api ")
	}, patience, 100*time.Millisecond)
	require.Contains(t, text.String(), "Is the limiter sick? ")
	require.Contains(t, text.String(), "1/min")

	t.Setenv("REDISCLI_AUTH", "secret")
	err = showTop([]string{"-h", host, "-p", port, "--once", "--user", "low"}, &text)
	require.ErrorContains(t, err, "NOPERM User low has no permissions to run the 'rl.report|overview' command")
}

package server_test

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/storetest"
)

// startAt runs a server with limits in what the URL names, and the system's clock.
func startAt(t *testing.T, kind, url string, flags ...string) *fixture {
	t.Helper()
	c, err := config.Load(append([]string{"--transport", kind, "--io-threads", "2", "--dir", t.TempDir(), "--store", url}, flags...), nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return launchAt(t, c, l, nil, nil, func() {})
}

// TestServersShareLimitsInACluster: three servers over three nodes, one of which is stopped.
func TestServersShareLimitsInACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("real nodes are left to the full test run")
	}
	url := storetest.Best(t).Cluster(t, 3, 0, storetest.Options{}).URL()
	var clients []*client
	for range 3 {
		c := startAt(t, "auto", url, "--store-timeout", "5000").dial()
		eventually(t, "nodes", func() bool { return !strings.HasPrefix(c.do("CL.THROTTLE", "first", "1", "1", "60"), "-UNAVAILABLE") })
		clients = append(clients, c)
	}
	admitted := 0
	for i := range 300 {
		reply := clients[i%3].do("CL.THROTTLE", "k", "99", "1", "86400")
		require.True(t, strings.HasPrefix(reply, "*5\r\n:"), reply)
		if strings.HasPrefix(reply, "*5\r\n:0\r\n") {
			admitted++
		}
	}
	require.Equal(t, 100, admitted)
	require.Equal(t, "cluster", clients[0].info("store_kind"))
	require.Regexp(t, `^addr=127\.0\.0\.1:\d+,version=\w+ [\d.]+,state=up,reason=,up=1,rtt_seconds=`, clients[0].info("store_node2"))
	require.Equal(t, ":1\r\n", clients[1].do("DEL", "k"))
	require.Equal(t, five(0, 100, 99, -1, 86400), clients[1].do("CL.THROTTLE", "k", "99", "1", "86400"))
	require.Equal(t, "+OK\r\n", clients[2].do("FLUSHDB"))
	require.Equal(t, ":0\r\n", clients[0].do("DBSIZE"))
}

// TestServerStartsWhileTheStoreIsAway: the policies answer, one line of the log says that
// the store is away, and it is asked as soon as it is there.
func TestServerStartsWhileTheStoreIsAway(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		url := "redis://user:canary@127.0.0.1:" + freeport.Choose()
		f := startAt(t, kind, url, "--fail-policy", "closed", "open:", "open", "local:", "local", "--store-servers", "2")
		c := f.dial()
		require.True(t, strings.HasPrefix(c.do("CL.THROTTLE", "k", "9", "10", "60"), "-UNAVAILABLE the store does not answer: "))
		require.Equal(t, five(0, 10, 10, -1, 0), c.do("CL.THROTTLE", "open:k", "9", "10", "60"))
		admitted := 0
		for range 10 {
			if strings.HasPrefix(c.do("CL.THROTTLE", "local:k", "9", "10", "86400"), "*5\r\n:0\r\n") {
				admitted++
			}
		}
		require.Equal(t, 5, admitted, "half of what all servers together admit")
		require.Equal(t, "+PONG\r\n", c.do("PING"))
		require.Equal(t, "unknown", c.info("store_kind"))
		require.Contains(t, c.info("store_policy_open"), "calls=1,")
		require.Contains(t, c.info("store_policy_local"), "calls=10,")
		eventually(t, "a line of the log", func() bool { return strings.Contains(f.log.String(), "level=WARN") })
		require.NotContains(t, f.log.String(), "canary")
	})
}

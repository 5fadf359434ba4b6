//go:build real

package server_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/storetest"
)

// TestServersShareLimitsInACluster: three servers use three nodes, one of which is stopped.
func TestServersShareLimitsInACluster(t *testing.T) {
	url := storetest.Best(t).Cluster(t, 3, 0, storetest.Options{}).URL()
	var clients []*inproc.Client
	for range 3 {
		c := inproc.ServeTimed(t, "auto", "--store", url, "--store-timeout", "5000").Dial()
		inproc.Await(t, "nodes", func() bool { return !strings.HasPrefix(c.Do("CL.THROTTLE", "first", "1", "1", "60"), "-UNAVAILABLE") })
		clients = append(clients, c)
	}
	admitted := 0
	for i := range 300 {
		reply := clients[i%3].Do("CL.THROTTLE", "k", "99", "1", "86400")
		require.True(t, strings.HasPrefix(reply, "*5\r\n:"), reply)
		if strings.HasPrefix(reply, "*5\r\n:0\r\n") {
			admitted++
		}
	}
	require.Equal(t, 100, admitted)
	require.Equal(t, "cluster", clients[0].Info("store_kind"))
	require.Regexp(t, `^addr=127\.0\.0\.1:\d+,version=\w+ [\d.]+,state=up,reason=,up=1,rtt_seconds=`, clients[0].Info("store_node2"))
	require.Equal(t, ":1\r\n", clients[1].Do("DEL", "k"))
	require.Equal(t, inproc.Five(0, 100, 99, -1, 86400), clients[1].Do("CL.THROTTLE", "k", "99", "1", "86400"))
	require.Equal(t, "+OK\r\n", clients[2].Do("FLUSHDB"))
	require.Equal(t, ":0\r\n", clients[0].Do("DBSIZE"))
}

// TestServerStartsWhileTheStoreIsAway: the fail policies answer, one line of the log says that the
// store is not reachable, and the store is used as soon as it is reachable.
func TestServerStartsWhileTheStoreIsAway(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		url := "redis://user:canary@127.0.0.1:" + freeport.Choose()
		f := inproc.ServeTimed(t, kind, "--store", url, "--fail-policy", "closed", "open:", "open", "local:", "local", "--store-servers", "2")
		c := f.Dial()
		require.True(t, strings.HasPrefix(c.Do("CL.THROTTLE", "k", "9", "10", "60"), "-UNAVAILABLE the store does not answer: "))
		require.Equal(t, inproc.Five(0, 10, 10, -1, 0), c.Do("CL.THROTTLE", "open:k", "9", "10", "60"))
		admitted := 0
		for range 10 {
			if strings.HasPrefix(c.Do("CL.THROTTLE", "local:k", "9", "10", "86400"), "*5\r\n:0\r\n") {
				admitted++
			}
		}
		require.Equal(t, 5, admitted, "half of what all servers together admit")
		require.Equal(t, "+PONG\r\n", c.Do("PING"))
		require.Equal(t, "unknown", c.Info("store_kind"))
		require.Contains(t, c.Info("store_policy_open"), "calls=1,")
		require.Contains(t, c.Info("store_policy_local"), "calls=10,")
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "fail-policy", "open"))
		require.Equal(t, inproc.Five(0, 10, 10, -1, 0), c.Do("CL.THROTTLE", "k", "9", "10", "60"), "in force during the outage")
		inproc.Await(t, "a line of the log", func() bool { return strings.Contains(f.Log.String(), "level=WARN") })
		require.NotContains(t, f.Log.String(), "canary")
	})
}

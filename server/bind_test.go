package server_test

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/freeport"
)

// TestBind: the addresses of IPv4 and IPv6 may be named side by side, as redis.conf
// does, and each is what it says.
func TestBind(t *testing.T) {
	v6 := true
	if l, err := net.Listen("tcp6", "[::1]:0"); err != nil {
		v6 = false
	} else {
		require.NoError(t, l.Close())
	}
	for bind, reaches := range map[string]string{
		"* -::*":         "127.0.0.1 ::1",
		"0.0.0.0 -::":    "127.0.0.1 ::1",
		"*":              "127.0.0.1",
		"0.0.0.0":        "127.0.0.1",
		"-::* 127.0.0.1": "127.0.0.1 ::1",
		"-::1 127.0.0.1": "127.0.0.1 ::1",
		"localhost":      "127.0.0.1",
	} {
		port := freeport.Choose()
		s, err := newServer(t, "--port", port, "--bind="+bind, "--requirepass", "x")
		require.NoError(t, err, "%q", bind)
		stop := run(t, s)
		for _, host := range []string{"127.0.0.1", "::1"} {
			if host == "::1" && !v6 {
				continue
			}
			conn, err := net.Dial("tcp", net.JoinHostPort(host, port))
			if !strings.Contains(reaches, host) {
				require.Error(t, err, "%q lets %s in", bind, host)
				continue
			}
			require.NoError(t, err, "%q and %s", bind, host)
			require.NoError(t, conn.Close())
		}
		stop()
	}
}

// TestServiceLinks: what Kubernetes tells about a service of our name is no
// configuration, and what is still is.
func TestServiceLinks(t *testing.T) {
	c, err := config.Load(nil, []string{
		"CELLSERVER_SERVICE_HOST=10.0.0.1", "CELLSERVER_SERVICE_PORT=6379", "CELLSERVER_SERVICE_PORT_REDIS=6379",
		"CELLSERVER_PORT=tcp://10.0.0.1:6379", "CELLSERVER_PORT_6379_TCP=tcp://10.0.0.1:6379",
		"CELLSERVER_PORT_6379_TCP_PROTO=tcp", "CELLSERVER_PORT_6379_TCP_PORT=6379", "CELLSERVER_PORT_6379_TCP_ADDR=10.0.0.1",
		"CELLSERVER_MAXCLIENTS=77",
	})
	require.NoError(t, err)
	require.Equal(t, [][2]string{{"port", "6379"}}, c.Get(func(name string) bool { return name == "port" }))
	require.Equal(t, [][2]string{{"maxclients", "77"}}, c.Get(func(name string) bool { return name == "maxclients" }))
	c, err = config.Load(nil, []string{"CELLSERVER_PORT=7000"})
	require.NoError(t, err)
	require.Equal(t, [][2]string{{"port", "7000"}}, c.Get(func(name string) bool { return name == "port" }))
	_, err = config.Load(nil, []string{"CELLSERVER_PORT=70000"})
	require.Error(t, err)
}

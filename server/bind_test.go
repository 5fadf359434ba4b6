package server_test

import (
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/simnet"
	"github.com/cellserver/cellserver/server"
)

// TestBind: the addresses of IPv4 and IPv6 may be named side by side, as redis.conf
// does, and each is what it says: tcp6 takes no IPv4.
func TestBind(t *testing.T) {
	for bind, want := range map[string][]string{
		"* -::*":         {"tcp4 :6379", "tcp6 [::]:6379"},
		"0.0.0.0 -::":    {"tcp4 0.0.0.0:6379", "tcp6 [::]:6379"},
		"*":              {"tcp4 :6379"},
		"0.0.0.0":        {"tcp4 0.0.0.0:6379"},
		"-::* 127.0.0.1": {"tcp6 [::]:6379", "tcp4 127.0.0.1:6379"},
		"-::1 127.0.0.1": {"tcp6 [::1]:6379", "tcp4 127.0.0.1:6379"},
		"localhost":      {"tcp localhost:6379"},
	} {
		c, err := config.Load([]string{"--transport", "goroutine", "--bind=" + bind, "--requirepass", "x"}, nil)
		require.NoError(t, err)
		network := simnet.New()
		var got []string
		_, err = server.New(c, server.Options{
			Log: slog.New(slog.DiscardHandler),
			Listen: func(kind, address string) (net.Listener, error) {
				got = append(got, kind+" "+address)
				return network.Listen("127.0.0.1:0")
			},
		})
		require.NoError(t, err, "%q", bind)
		require.Equal(t, want, got, "%q", bind)
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

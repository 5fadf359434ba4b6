package listen_test

import (
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/simnet"
	"github.com/cellserver/cellserver/server"
)

// TestBind: the addresses of IPv4 and IPv6 may be given together, as in redis.conf, and each covers
// only its family: tcp6 accepts no IPv4.
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

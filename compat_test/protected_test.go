package compat_test

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestProtectedMode: a server without a password serves only clients on this machine, and replies
// to others with the reason.
func TestProtectedMode(t *testing.T) {
	elsewhere := &net.TCPAddr{IP: net.IPv4(203, 0, 113, 9), Port: 40000}
	for _, c := range []struct {
		name    string
		options []string
		from    net.Addr
		reply   string // to PING; "" for a refusal
	}{
		{"this machine", nil, &net.TCPAddr{IP: net.IPv6loopback, Port: 1}, "+PONG\r\n"},
		{"a unix socket", nil, &net.UnixAddr{Name: "/tmp/s", Net: "unix"}, "+PONG\r\n"},
		{"elsewhere", nil, elsewhere, ""},
		{"elsewhere, unprotected", []string{"--protected-mode", "no"}, elsewhere, "+PONG\r\n"},
		{"elsewhere, with a password", []string{"--requirepass", "secret"}, elsewhere, "-NOAUTH Authentication required.\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := inproc.Feed(scriptStart, c.options...)
			require.NoError(t, err)
			defer s.Close()
			session, rejection := s.Server().Open(c.from)
			if c.reply == "" {
				require.Nil(t, session)
				require.True(t, strings.HasPrefix(string(rejection), "-DENIED Redis is running in protected mode because "), "%q", rejection)
				require.True(t, strings.HasSuffix(string(rejection), "\r\n"))
				return
			}
			require.NotNil(t, session, "%q", rejection)
			reply, err := session.Do("PING")
			require.NoError(t, err)
			require.Equal(t, c.reply, string(reply))
		})
	}
}

package main

import (
	"bytes"
	"crypto/tls"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/freeport"
)

// pinged runs the command and returns its status and all that it says. Unless args say otherwise
// it waits for longer than usual: a busy machine may stop the server or this process.
func pinged(args ...string) (status int, said string) {
	var out bytes.Buffer
	status = run(append([]string{"ping", "--timeout", "20"}, args...), nil, &out, &out)
	return status, out.String()
}

// TestPingFailsWithoutAServer: at once where nothing listens, and in time where nothing answers.
func TestPingFailsWithoutAServer(t *testing.T) {
	status, said := pinged("redis://127.0.0.1:" + freeport.Choose())
	require.Equal(t, 1, status)
	require.Contains(t, said, "nothing listens at this address")

	mute, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = mute.Close() }()
	status, said = pinged("redis://"+mute.Addr().String(), "--timeout", "50ms")
	require.Equal(t, 1, status)
	// The second is said where the time is over before the command has been sent.
	require.Regexp(t, "no answer|it took too long", said)

	for _, args := range [][]string{{"a", "b"}, {"--nosuch"}, {"127.0.0.1:1"}} {
		status, said = pinged(args...)
		require.Equal(t, 1, status, "%s", said)
	}
}

// TestPingSaysThatACertificateIsMissing: it is the client's, whatever this machine trusts.
func TestPingSaysThatACertificateIsMissing(t *testing.T) {
	pair := certtest.New(t).Issue(t, certtest.Subject{Name: "server"})
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair.TLS}, ClientAuth: tls.RequireAnyClientCert})
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	go func() {
		if c, err := l.Accept(); err == nil {
			_ = c.(*tls.Conn).Handshake() // it fails
			_ = c.Close()
		}
	}()
	status, said := pinged("rediss://" + l.Addr().String() + "?skip_verify=true")
	require.Equal(t, 1, status)
	require.Contains(t, said, "the server wants a certificate of its clients")
	require.NotContains(t, said, "does not trust")
}

package main

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
)

// TestPingFailsWithoutAServer: ping fails at once if nothing listens, and in time if nothing
// replies.
func TestPingFailsWithoutAServer(t *testing.T) {
	on(t, func(t *testing.T, m *machine) {
		began := time.Now()
		status, said := m.pinged("redis://127.0.0.1:1")
		require.Equal(t, 1, status)
		require.Contains(t, said, "nothing listens at this address")
		require.Zero(t, time.Since(began))

		_, port := m.listen(t)
		status, said = m.pinged("redis://127.0.0.1:"+port, "--timeout", "50ms")
		require.Equal(t, 1, status)
		require.Regexp(t, "no answer|it took too long", said)
		require.Equal(t, 50*time.Millisecond, time.Since(began))

		for _, args := range [][]string{{"a", "b"}, {"--nosuch"}, {"127.0.0.1:1"}} {
			status, said = m.pinged(args...)
			require.Equal(t, 1, status, "%s", said)
		}
	})
}

// TestPingSaysThatACertificateIsMissing: the error is about the client's certificate, whatever this
// machine trusts.
func TestPingSaysThatACertificateIsMissing(t *testing.T) {
	on(t, func(t *testing.T, m *machine) {
		pair := certtest.New(t).Issue(t, certtest.Subject{Name: "server"})
		l, port := m.listen(t)
		go func() {
			if c, err := l.Accept(); err == nil {
				_ = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{pair.TLS}, ClientAuth: tls.RequireAnyClientCert}).Handshake() // the handshake fails
				_ = c.Close()
			}
		}()
		status, said := m.pinged("rediss://127.0.0.1:" + port + "?skip_verify=true")
		require.Equal(t, 1, status)
		require.Contains(t, said, "the server wants a certificate of its clients")
		require.NotContains(t, said, "does not trust")
	})
}

//go:build real

package server_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// tlsServer is a server with one port with TLS and one without.
type tlsServer struct {
	*server.Server
	t         testing.TB
	authority *certtest.Authority
	pair      certtest.Pair
	log       *inproc.LogBuffer
	plain     string
	secure    string
}

// listen opens a loopback port for a server.
func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// startTLS runs a server that requests no client certificate, unless flags say otherwise.
func startTLS(t testing.TB, kind string, flags ...string) *tlsServer {
	t.Helper()
	s := &tlsServer{t: t, authority: certtest.New(t), log: &inproc.LogBuffer{}}
	s.pair = s.authority.Issue(t, certtest.Subject{Name: "server"})
	plain, secure := listen(t), listen(t)
	s.plain, s.secure = plain.Addr().String(), secure.Addr().String()
	c, err := config.Load(append([]string{
		"--tls-port", strconv.Itoa(secure.Addr().(*net.TCPAddr).Port), "--transport", kind, "--io-threads", "2", "--dir", t.TempDir(),
		"--tls-cert-file", s.pair.CertFile, "--tls-key-file", s.pair.KeyFile, "--tls-ca-cert-file", s.authority.File, "--tls-auth-clients", "no",
	}, flags...), nil)
	require.NoError(t, err)
	s.Server, err = server.New(c, server.Options{
		Inherited: map[string][]net.Listener{"port": {plain}, "tls-port": {secure}},
		Log:       slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	t.Cleanup(func() {
		s.Stop()
		require.NoError(t, <-done)
	})
	return s
}

// connect opens a connection with a TLS handshake.
func (s *tlsServer) connect(conf *tls.Config) (*inproc.Client, error) {
	nc, err := tls.Dial("tcp", s.secure, conf)
	if err != nil {
		return nil, err
	}
	if err := nc.SetDeadline(time.Now().Add(inproc.Patience)); err != nil {
		return nil, err
	}
	return inproc.NewClient(s.t, nc), nil
}

// dial is connect that must succeed.
func (s *tlsServer) dial(conf *tls.Config) *inproc.Client {
	s.t.Helper()
	c, err := s.connect(conf)
	require.NoError(s.t, err)
	return c
}

// served reports whether such a client gets a reply. With TLS 1.3 a client learns only from its
// first read that its certificate is refused.
func (s *tlsServer) served(conf *tls.Config) bool {
	s.t.Helper()
	c, err := s.connect(conf)
	if err != nil {
		return false
	}
	if _, err := io.WriteString(c, "PING\r\n"); err != nil {
		return false
	}
	line, err := c.R.ReadString('\n')
	return err == nil && line == "+PONG\r\n"
}

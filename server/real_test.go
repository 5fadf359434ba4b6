//go:build real

package server_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/server"
)

// real is a server with sockets and the clock of the machine, beside foreign programs.
type real struct {
	*server.Server
	log *inproc.LogBuffer
	t   testing.TB
}

// startBesideReal runs a server with options as on the command line until the test ends.
func startBesideReal(t testing.TB, kind string, options ...string) *real {
	t.Helper()
	c, err := config.Load(append([]string{"--transport", kind, "--io-threads", "2", "--dir", t.TempDir()}, options...), nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &real{log: &inproc.LogBuffer{}, t: t}
	r.Server, err = server.New(c, server.Options{Log: slog.New(slog.NewTextHandler(r.log, nil)), Listeners: []net.Listener{l}})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- r.Run(context.Background()) }()
	t.Cleanup(func() {
		r.Stop()
		require.NoError(t, <-done)
	})
	inproc.Await(t, "loaded", func() bool { return !r.Engine().Loading() })
	return r
}

// dial connects a client.
func (r *real) dial() *inproc.Client {
	r.t.Helper()
	return inproc.Dial(r.t, "tcp", r.Addr().String())
}

// place is the host and the port of the server.
func (r *real) place() (host, port string) {
	host, port, err := net.SplitHostPort(r.Addr().String())
	require.NoError(r.t, err)
	return host, port
}

// replication has the fields of INFO replication.
func (r *real) replication() map[string]string {
	r.t.Helper()
	c := r.dial()
	defer c.Close()
	fields := map[string]string{}
	for line := range strings.SplitSeq(c.Do("INFO", "replication"), "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// follow makes r a replica of another server, and returns when it has the state.
func (r *real) follow(primary *real) {
	r.t.Helper()
	host, port := primary.place()
	require.Contains(r.t, r.dial().Do("REPLICAOF", host, port), "+OK")
	inproc.Await(r.t, "the link is up", func() bool {
		is := r.replication()
		return is["master_port"] == port && is["master_link_status"] == "up"
	})
}

// agree waits until a replica is at the offset of r, and compares what they hold.
func (r *real) agree(replica *real) {
	r.t.Helper()
	inproc.Await(r.t, "the replica has everything", func() bool {
		is, has := r.replication(), replica.replication()
		return is["master_replid"] == has["master_replid"] && is["master_repl_offset"] == has["slave_repl_offset"]
	})
	require.Equal(r.t, r.state(), replica.state())
}

// state has all keys, and what they hold.
func (r *real) state() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	require.NoError(r.t, r.Keyspace().Snapshot(func(db int, key []byte, e entry.Entry) {
		all[fmt.Sprintf("%d/%s", db, key)] = fmt.Sprintf("%d %d %x", e.Kind, e.Expiry, e.Value)
	}, func() error { return nil }))
	return all
}

// tlsServer is a server with a port for TLS and one without.
type tlsServer struct {
	*server.Server
	t         testing.TB
	authority *certtest.Authority
	pair      certtest.Pair
	log       *inproc.LogBuffer
	plain     string
	secure    string
}

// startTLS runs a server that asks for no certificate, unless flags say otherwise.
func startTLS(t testing.TB, kind string, flags ...string) *tlsServer {
	t.Helper()
	s := &tlsServer{t: t, authority: certtest.New(t), log: &inproc.LogBuffer{}}
	s.pair = s.authority.Issue(t, certtest.Subject{Name: "server"})
	plain, secure := freeport.Choose(), freeport.Choose()
	s.plain, s.secure = net.JoinHostPort("127.0.0.1", plain), net.JoinHostPort("127.0.0.1", secure)
	c, err := config.Load(append([]string{
		"--bind", "127.0.0.1", "--port", plain, "--tls-port", secure, "--transport", kind, "--io-threads", "2", "--dir", t.TempDir(),
		"--tls-cert-file", s.pair.CertFile, "--tls-key-file", s.pair.KeyFile, "--tls-ca-cert-file", s.authority.File, "--tls-auth-clients", "no",
	}, flags...), nil)
	require.NoError(t, err)
	s.Server, err = server.New(c, server.Options{Log: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	t.Cleanup(func() {
		s.Stop()
		require.NoError(t, <-done)
	})
	return s
}

// connect shakes hands.
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

// dial is connect for a client that is welcome.
func (s *tlsServer) dial(conf *tls.Config) *inproc.Client {
	s.t.Helper()
	c, err := s.connect(conf)
	require.NoError(s.t, err)
	return c
}

// served reports whether such a client gets an answer. With TLS 1.3 a client learns only
// from its first read that its certificate is refused.
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

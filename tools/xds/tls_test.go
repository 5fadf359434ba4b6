package xds_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/test/bufconn"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/tools/xds"
)

// TestControlPlaneOverTLS: client and control plane show each other certificates. A client that has another authority, asks for
// another name, or shows no certificate, gets no rules.
func TestControlPlaneOverTLS(t *testing.T) {
	authority, other := certtest.New(t), certtest.New(t)
	server := authority.Issue(t, certtest.Subject{Name: "plane"})
	shown := authority.Issue(t, certtest.Subject{Name: "ratelimit"})
	p := &plane{requests: make(chan *discovery.DiscoveryRequest), responses: make(chan *discovery.DiscoveryResponse), header: make(chan string, 9)}
	listener := bufconn.Listen(1 << 20)
	g := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{server.TLS}, ClientCAs: authority.Client().RootCAs, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	discovery.RegisterAggregatedDiscoveryServiceServer(g, p)
	go g.Serve(listener) //nolint:errcheck // it ends with the test
	defer g.Stop()

	whole := xds.Settings{
		Address: "passthrough:localhost", ConnectRetry: time.Millisecond, BackoffInitial: time.Millisecond, BackoffMax: time.Millisecond,
		Headers: map[string]string{"x-tenant": "acme"}, UseTLS: true, Cert: shown.CertFile, Key: shown.KeyFile, CACert: authority.File, SAN: "localhost",
	}
	// runs starts a client with the changed settings. Each connection of it is in dials. end ends it, and returns its error.
	runs := func(t *testing.T, change func(s *xds.Settings)) (dials chan struct{}, end func() error) {
		s := whole
		change(&s)
		dials = make(chan struct{})
		dir := filepath.Join(t.TempDir(), "config")
		c := xds.Client{
			Settings: &s, Directory: &xds.Directory{Path: dir}, Server: &loader{path: dir}, Log: slog.New(slog.DiscardHandler),
			Dial: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				select {
				case dials <- struct{}{}:
					return listener.DialContext(ctx)
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			})},
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		return dials, func() error {
			stop()
			return <-done
		}
	}

	t.Run("whole", func(t *testing.T) {
		dials, end := runs(t, func(*xds.Settings) {})
		<-dials
		<-p.requests
		require.Equal(t, "acme", <-p.header)
		p.responses <- &discovery.DiscoveryResponse{VersionInfo: "1", Nonce: "a", Resources: nil}
		require.Equal(t, "1", (<-p.requests).GetVersionInfo())
		require.NoError(t, end())
	})
	for name, change := range map[string]func(s *xds.Settings){
		"another authority": func(s *xds.Settings) { s.CACert = other.File },
		"another name":      func(s *xds.Settings) { s.SAN = "other.example" },
		"no certificate":    func(s *xds.Settings) { s.Cert, s.Key = "", "" },
		"no TLS":            func(s *xds.Settings) { s.UseTLS = false },
	} {
		t.Run(name, func(t *testing.T) {
			dials, end := runs(t, change)
			for range 3 { // the next attempt begins after the one before has failed
				<-dials
			}
			require.NoError(t, end())
			require.Empty(t, p.header, "there is no stream")
		})
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for want, change := range map[string]func(s *xds.Settings){
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT: " + empty + " has no certificate in PEM": func(s *xds.Settings) { s.CACert = empty },
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT: open":                                    func(s *xds.Settings) { s.CACert = empty + ".not" },
		"CONFIG_GRPC_XDS_CLIENT_TLS_CERT: ":                                          func(s *xds.Settings) { s.Key = empty },
	} {
		_, end := runs(t, change)
		require.ErrorContains(t, end(), want)
	}
}

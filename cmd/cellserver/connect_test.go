package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/server"
)

// secureServer is a server in this process that speaks TLS only, and wants a certificate.
type secureServer struct {
	authority *certtest.Authority
	own, app  certtest.Pair
	port      string
	flags     []string
}

func startSecure(t *testing.T, flags ...string) *secureServer {
	t.Helper()
	s := &secureServer{authority: certtest.New(t), port: freeport.Choose()}
	s.own = s.authority.Issue(t, certtest.Subject{Name: "server"})
	s.app = s.authority.Issue(t, certtest.Subject{Name: "app"})
	s.flags = append([]string{
		"--port", "0", "--tls-port", s.port, "--bind", "127.0.0.1", "--dir", t.TempDir(),
		"--tls-cert-file", s.own.CertFile, "--tls-key-file", s.own.KeyFile, "--tls-ca-cert-file", s.authority.File,
	}, flags...)
	c, err := config.Load(s.flags, nil)
	require.NoError(t, err)
	running, err := server.New(c, server.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- running.Run(context.Background()) }()
	t.Cleanup(func() {
		running.Stop()
		require.NoError(t, <-done)
	})
	return s
}

// environ has the environment configure the server, as in a container.
func (s *secureServer) environ(t *testing.T) {
	t.Helper()
	for i := 0; i < len(s.flags); i += 2 {
		name := strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(s.flags[i], "--"), "-", "_"))
		t.Setenv("CELLSERVER_"+name, s.flags[i+1])
	}
}

// file is a file that configures the server.
func (s *secureServer) file(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(s.flags); i += 2 {
		b.WriteString(strings.TrimPrefix(s.flags[i], "--") + " " + s.flags[i+1] + "\n")
	}
	path := filepath.Join(t.TempDir(), "cellserver.conf")
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

// TestPingOverTLS: with the options of redis-cli, by an address, by the environment of a
// container, and by the file of the server, whose own certificate it shows.
func TestPingOverTLS(t *testing.T) {
	s := startSecure(t, "--requirepass", "secret")
	ca, pair := []string{"--cacert", s.authority.File}, []string{"--cert", s.app.CertFile, "--key", s.app.KeyFile}
	all := append(append([]string{"--tls", "-p", s.port, "--sni", "localhost", "--user", "default"}, ca...), pair...)
	t.Setenv("REDISCLI_AUTH", "secret")
	for _, args := range [][]string{
		all,
		append(append([]string{"rediss://127.0.0.1:" + s.port}, ca...), pair...),
		append(append([]string{"redis://localhost:" + s.port, "--tls"}, ca...), pair...),
		append([]string{"-h", "127.0.0.1", "-p", s.port, "--tls", "--insecure"}, pair...),
		{"--config", s.file(t)},
		append([]string{"--config", s.file(t), "--sni", "localhost"}, ca...),
	} {
		status, said := pinged(args...)
		require.Zero(t, status, "%s: %s", args, said)
		require.Equal(t, "PONG\n", said, "%s", args)
	}
	t.Setenv("REDISCLI_AUTH", "")
	for want, args := range map[string][]string{
		"the server wants a certificate of its clients": append([]string{"rediss://127.0.0.1:" + s.port}, ca...),
		"does not trust the certificate":                append([]string{"rediss://127.0.0.1:" + s.port}, pair...),
		"does it require TLS":                           {"-p", s.port},
		"need --tls":                                    append([]string{"-p", s.port}, ca...),
		"belong together":                               {"--tls", "-p", s.port, "--cert", s.app.CertFile},
		"--cacert: open ":                               {"--tls", "-p", s.port, "--cacert", "/no/such/file"},
		"contains no certificate":                       {"--tls", "-p", s.port, "--cacert", s.app.KeyFile},
		"a unix socket does not speak TLS":              {"--tls", "unix:///tmp/s"},
		"give one of them":                              {"-p", s.port, "redis://localhost:1"},
		"give no other address":                         {"--config", "x", "redis://localhost:1"},
		"-p x is no port":                               {"-p", "x"},
		`for flag -timeout: write seconds`:              {"--timeout", "soon"},
		"usage: cellserver ping":                        {"--timeout", "0"},
	} {
		status, said := pinged(args...)
		require.Equal(t, 1, status, "%s", args)
		require.Contains(t, said, want, "%s", args)
	}
	s.environ(t)
	status, said := pinged()
	require.Zero(t, status, said)
	require.Equal(t, "PONG\n", said)
}

// TestPingSaysThatItsCertificateIsRefused: it is not the server's that is at fault.
func TestPingSaysThatItsCertificateIsRefused(t *testing.T) {
	s := startSecure(t)
	other := certtest.New(t).Issue(t, certtest.Subject{Name: "app"})
	status, said := pinged("rediss://127.0.0.1:"+s.port, "--cacert", s.authority.File, "--cert", other.CertFile, "--key", other.KeyFile)
	require.Equal(t, 1, status)
	require.Contains(t, said, refusesCertificate)
}

// TestPingOfABusyServer: a server that runs a script is not dead, with a password and without.
func TestPingOfABusyServer(t *testing.T) {
	s := startSecure(t, "--busy-reply-threshold", "1", "--requirepass", "secret")
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:" + s.port, TLSConfig: s.authority.Client(s.app), Password: "secret",
		MaxRetries: -1, ReadTimeout: patience, DisableIdentity: true,
	})
	defer func() { require.NoError(t, client.Close()) }()
	ended := make(chan error, 1)
	go func() { ended <- client.Eval(t.Context(), "while true do end", nil).Err() }()
	s.environ(t)
	require.Eventually(t, func() bool {
		status, said := pinged()
		require.Zero(t, status, said)
		return strings.HasPrefix(said, "BUSY ")
	}, patience, patience/10_000)
	killer := redis.NewClient(&redis.Options{ // who does not ask twice: the script would be gone
		Addr: "127.0.0.1:" + s.port, TLSConfig: s.authority.Client(s.app), Password: "secret", Protocol: 2,
		MaxRetries: -1, ReadTimeout: patience, DisableIdentity: true,
	})
	defer func() { require.NoError(t, killer.Close()) }()
	require.NoError(t, killer.ScriptKill(t.Context()).Err())
	require.ErrorContains(t, <-ended, "killed")
}

// TestPingOfAServerThatCannotWrite: the server answers, and a restart would not help.
func TestPingOfAServerThatCannotWrite(t *testing.T) {
	for answer, want := range map[string]int{
		"-MISCONF Errors writing to the AOF file: No space left on device": 0,
		"-BUSY Redis is busy running a script.":                            0,
		"-LOADING Redis is loading the dataset in memory":                  1,
		"-ERR max number of clients reached":                               1,
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go func() {
			c, err := l.Accept()
			for err == nil {
				if _, err = c.Read(make([]byte, 256)); err == nil {
					_, err = io.WriteString(c, answer+"\r\n")
				}
			}
		}()
		status, said := pinged("redis://" + l.Addr().String())
		require.Equal(t, want, status, "%s: %s", answer, said)
		require.NoError(t, l.Close())
	}
}

// TestTopOverTLS: the report of a server with TLS that wants a certificate.
func TestTopOverTLS(t *testing.T) {
	s := startSecure(t)
	t.Setenv("REDISCLI_AUTH", "")
	var text strings.Builder
	for _, args := range [][]string{
		{"-h", "localhost", "-p", s.port, "--tls"},
		{"redis://localhost:" + s.port, "--tls"},
		{"rediss://localhost:" + s.port},
	} {
		text.Reset()
		args = append(args, "--cacert", s.authority.File, "--cert", s.app.CertFile, "--key", s.app.KeyFile, "--once")
		require.NoError(t, showTop(args, &text))
		require.Contains(t, text.String(), "Is the limiter sick? ")
	}
	err := showTop([]string{"rediss://localhost:" + s.port, "--cacert", s.authority.File, "--once"}, &text)
	require.ErrorContains(t, err, "wants a certificate of its clients")
}

// TestLocalHost: where a server is asked on the machine that it runs on.
func TestLocalHost(t *testing.T) {
	for bind, want := range map[string]string{
		"* -::*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::*": "::1", "-::1 127.0.0.1": "127.0.0.1", "-::1": "::1",
		"10.1.2.3 127.0.0.1": "10.1.2.3", "": "127.0.0.1",
	} {
		c, err := config.Load([]string{"--requirepass", "x", "--bind", bind}, nil)
		require.NoError(t, err)
		require.Equal(t, want, localHost(c), bind)
	}
}

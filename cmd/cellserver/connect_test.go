package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/inproc"
)

// machine is a simulated machine with a server that accepts only TLS and requires a certificate. It
// is in a bubble.
type machine struct {
	w         *inproc.World
	authority *certtest.Authority
	own, app  certtest.Pair
	flags     []string
}

// securePort is the port of the server of a [machine].
const securePort = "7001"

// DialContext connects as a program on the machine does. The machine has one address.
func (m *machine) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	conn, err := m.w.Net.Dial(ctx, "127.0.0.1", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, err
	}
	return tcp{conn}, nil
}

// tcp is a connection whose writes succeed even if the peer has closed it, like the first write on
// TCP. So the client reads the reason, such as a TLS alert.
type tcp struct{ net.Conn }

// Write implements [net.Conn].
func (c tcp) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		return len(b), nil
	}
	return n, err
}

// listen opens a port of the machine.
func (m *machine) listen(t *testing.T) (l net.Listener, port string) {
	t.Helper()
	l, err := m.w.Net.Listen("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	_, port, err = net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return l, port
}

// pinged runs ping and returns its status and its output.
func (m *machine) pinged(args ...string) (status int, said string) {
	o := pingOptions{connectionFlags: connectionFlags{dial: m}}
	var out bytes.Buffer
	status = report(&out, o.run(args, &out))
	return status, out.String()
}

// on runs f with a machine in a bubble.
func on(t *testing.T, f func(t *testing.T, m *machine)) {
	t.Helper()
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) { f(t, &machine{w: w}) })
}

// onSecure runs f with a machine that has a server with further options.
func onSecure(t *testing.T, flags []string, f func(t *testing.T, m *machine)) {
	t.Helper()
	on(t, func(t *testing.T, m *machine) {
		m.authority = certtest.New(t)
		m.own = m.authority.Issue(t, certtest.Subject{Name: "server"})
		m.app = m.authority.Issue(t, certtest.Subject{Name: "app"})
		m.flags = append([]string{
			"--port", "0", "--tls-port", securePort, "--bind", "127.0.0.1",
			"--tls-cert-file", m.own.CertFile, "--tls-key-file", m.own.KeyFile, "--tls-ca-cert-file", m.authority.File,
		}, flags...)
		m.w.Start(m.flags...)
		f(t, m)
	})
}

// environ configures the server by the environment, as in a container.
func (m *machine) environ(t *testing.T) {
	t.Helper()
	for i := 0; i < len(m.flags); i += 2 {
		name := strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(m.flags[i], "--"), "-", "_"))
		t.Setenv("CELLSERVER_"+name, m.flags[i+1])
	}
}

// file returns a file that configures the server.
func (m *machine) file(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(m.flags); i += 2 {
		b.WriteString(strings.TrimPrefix(m.flags[i], "--") + " " + m.flags[i+1] + "\n")
	}
	path := filepath.Join(t.TempDir(), "cellserver.conf")
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

// TestPingOverTLS: ping works with the options of redis-cli, with an address, with the
// environment of a container, and with the file of the server, whose own certificate it then
// sends.
func TestPingOverTLS(t *testing.T) {
	onSecure(t, []string{"--requirepass", "secret"}, func(t *testing.T, m *machine) {
		ca, pair := []string{"--cacert", m.authority.File}, []string{"--cert", m.app.CertFile, "--key", m.app.KeyFile}
		all := append(append([]string{"--tls", "-p", securePort, "--sni", "localhost", "--user", "default"}, ca...), pair...)
		t.Setenv("REDISCLI_AUTH", "secret")
		for _, args := range [][]string{
			all,
			append(append([]string{"rediss://127.0.0.1:" + securePort}, ca...), pair...),
			append(append([]string{"redis://localhost:" + securePort, "--tls"}, ca...), pair...),
			append([]string{"-h", "127.0.0.1", "-p", securePort, "--tls", "--insecure"}, pair...),
			{"--config", m.file(t)},
			append([]string{"--config", m.file(t), "--sni", "localhost"}, ca...),
		} {
			status, said := m.pinged(args...)
			require.Zero(t, status, "%s: %s", args, said)
			require.Equal(t, "PONG\n", said, "%s", args)
		}
		t.Setenv("REDISCLI_AUTH", "")
		for want, args := range map[string][]string{
			"the server wants a certificate of its clients": append([]string{"rediss://127.0.0.1:" + securePort}, ca...),
			"does not trust the certificate":                append([]string{"rediss://127.0.0.1:" + securePort}, pair...),
			"does it require TLS":                           {"-p", securePort},
			"need --tls":                                    append([]string{"-p", securePort}, ca...),
			"belong together":                               {"--tls", "-p", securePort, "--cert", m.app.CertFile},
			"--cacert: open ":                               {"--tls", "-p", securePort, "--cacert", "/no/such/file"},
			"contains no certificate":                       {"--tls", "-p", securePort, "--cacert", m.app.KeyFile},
			"a unix socket does not speak TLS":              {"--tls", "unix:///tmp/s"},
			"give one of them":                              {"-p", securePort, "redis://localhost:1"},
			"give no other address":                         {"--config", "x", "redis://localhost:1"},
			"-p x is no port":                               {"-p", "x"},
			`for flag -timeout: write seconds`:              {"--timeout", "soon"},
			"usage: cellserver ping":                        {"--timeout", "0"},
		} {
			status, said := m.pinged(args...)
			require.Equal(t, 1, status, "%s", args)
			require.Contains(t, said, want, "%s", args)
		}
		m.environ(t)
		status, said := m.pinged()
		require.Zero(t, status, said)
		require.Equal(t, "PONG\n", said)
	})
}

// TestPingSaysThatItsCertificateIsRefused: the error says that the client's certificate is refused,
// and not the server's.
func TestPingSaysThatItsCertificateIsRefused(t *testing.T) {
	onSecure(t, nil, func(t *testing.T, m *machine) {
		other := certtest.New(t).Issue(t, certtest.Subject{Name: "app"})
		status, said := m.pinged("rediss://127.0.0.1:"+securePort, "--cacert", m.authority.File, "--cert", other.CertFile, "--key", other.KeyFile)
		require.Equal(t, 1, status)
		require.Contains(t, said, refusesCertificate)
	})
}

// TestPingOfAServerThatCannotWrite: the server replies, and a restart would not help.
func TestPingOfAServerThatCannotWrite(t *testing.T) {
	for answer, want := range map[string]int{
		"-MISCONF Errors writing to the AOF file: No space left on device": 0,
		"-BUSY Redis is busy running a script.":                            0,
		"-LOADING Redis is loading the dataset in memory":                  1,
		"-ERR max number of clients reached":                               1,
	} {
		on(t, func(t *testing.T, m *machine) {
			l, port := m.listen(t)
			go func() {
				c, err := l.Accept()
				for err == nil {
					if _, err = c.Read(make([]byte, 256)); err == nil {
						_, err = io.WriteString(c, answer+"\r\n")
					}
				}
			}()
			status, said := m.pinged("redis://127.0.0.1:" + port)
			require.Equal(t, want, status, "%s: %s", answer, said)
		})
	}
}

// TestTopOverTLS: top reads the report of a TLS server that requires a certificate.
func TestTopOverTLS(t *testing.T) {
	t.Setenv("REDISCLI_AUTH", "")
	onSecure(t, nil, func(t *testing.T, m *machine) {
		top := func(args ...string) (string, error) {
			var text strings.Builder
			err := (&topOptions{connectionFlags: connectionFlags{dial: m}}).run(append(args, "--cacert", m.authority.File, "--once"), &text)
			return text.String(), err
		}
		for _, args := range [][]string{
			{"-h", "localhost", "-p", securePort, "--tls"},
			{"redis://localhost:" + securePort, "--tls"},
			{"rediss://localhost:" + securePort},
		} {
			text, err := top(append(args, "--cert", m.app.CertFile, "--key", m.app.KeyFile)...)
			require.NoError(t, err)
			require.Contains(t, text, "Is the limiter sick? ")
		}
		_, err := top("rediss://localhost:" + securePort)
		require.ErrorContains(t, err, "wants a certificate of its clients")
	})
}

// TestLocalHost: the address of a server on the same machine.
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

package server_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// plainPort is the port without TLS of a node.
var plainPort = strconv.Itoa(inproc.Port)

// TestConfigSetPort: the ports with and without TLS change while the server runs. Connected clients
// stay connected, and the old port is closed.
func TestConfigSetPort(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartTLS()
		old, oldSecure := s.Dial(), s.DialTLS(s.Authority.Client())
		require.Equal(t, "+PONG\r\n", oldSecure.Do("PING"))
		plain := plainPort
		for i := range 3 {
			before, secureBefore := plain, s.TLSPort
			port, secure := strconv.Itoa(7000+i), strconv.Itoa(8000+i)
			require.Equal(t, inproc.OK, old.Do("CONFIG", "SET", "port", port))
			require.Equal(t, port, old.Info("tcp_port"))
			require.Equal(t, inproc.OK, old.Do("CONFIG", "SET", "TLS-PORT", secure, "timeout", "0"))
			plain, s.TLSPort = port, secure
			require.Equal(t, inproc.Array(inproc.Bulk("tls-port"), inproc.Bulk(secure)), old.Do("CONFIG", "GET", "tls-port"))
			require.Equal(t, "+PONG\r\n", s.DialPort(plain).Do("PING"))
			require.True(t, s.Serves(s.Authority.Client()))
			require.Equal(t, "+PONG\r\n", oldSecure.Do("PING"))
			require.False(t, s.OpenAt(before))
			require.False(t, s.OpenAt(secureBefore))
		}
		// One port is enough, and the last one is not closed.
		require.Equal(t, inproc.OK, old.Do("CONFIG", "SET", "port", "0"))
		require.False(t, s.OpenAt(plain))
		require.Equal(t, s.TLSPort, old.Info("tcp_port"))
		require.Contains(t, old.Do("CONFIG", "SET", "tls-port", "0"), "nothing to listen on")
		require.True(t, s.Serves(s.Authority.Client()))
		require.Equal(t, inproc.OK, old.Do("CONFIG", "SET", "port", plain, "tls-port", "0"))
		require.Equal(t, "+PONG\r\n", s.DialPort(plain).Do("PING"))
		require.False(t, s.OpenAt(s.TLSPort))
		require.Equal(t, "+PONG\r\n", oldSecure.Do("PING"))
		require.Equal(t, inproc.OK, old.Do("CONFIG", "SET", "tls-port", s.TLSPort), "the same port again")
		require.True(t, s.Serves(s.Authority.Client()))
	})
}

// TestClosingThePortWithTLSLetsNobodyInWithoutACertificate: the certificates of the admin port,
// which requests no client certificates, are read again before the port for clients is closed.
func TestClosingThePortWithTLSLetsNobodyInWithoutACertificate(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartTLS("--tls-auth-clients", "yes", "--admin-port", "8080", "--admin-tls", "yes")
		c := s.Dial()
		for _, port := range []string{"0", s.TLSPort, "0", "7000"} {
			require.Equal(t, tls.RequireAndVerifyClientCert, s.ClientAuth())
			require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "tls-port", port))
		}
		require.Equal(t, tls.RequireAndVerifyClientCert, s.ClientAuth())
	})
}

// TestRefusedPortChangesNothing: a port that is in use, a certificate that cannot be read and an
// option that does not exist change no open port, and open none.
func TestRefusedPortChangesNothing(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartTLS()
		c := s.Dial()
		before := []string{c.Do("CONFIG", "GET", "*port"), c.Do("CONFIG", "GET", "tls-*")}
		const other, free = "7000", "7001"
		s.Take(other)
		for want, pairs := range map[string][]string{
			"argument 'port') - Unable to listen on this port: listening on 127.0.": {"timeout", "5", "port", other},
			"argument 'tls-port') - Unable to listen on this port":                  {"tls-port", other},
			"Unable to listen on this port: listening on":                           {"port", free, "tls-port", other},
			"argument 'tls-cert-file') - ":                                          {"port", free, "tls-cert-file", "/no/such/file"},
			"argument couldn't be parsed into an integer":                           {"port", free, "timeout", "x"},
			"argument must be between 0 and 65535":                                  {"port", "65536"},
		} {
			require.Contains(t, c.Do(append([]string{"CONFIG", "SET"}, pairs...)...), want, "%s", pairs)
			require.Equal(t, before[0], c.Do("CONFIG", "GET", "*port"))
			require.Equal(t, before[1], c.Do("CONFIG", "GET", "tls-*"))
			require.Equal(t, inproc.Array(inproc.Bulk("timeout"), inproc.Bulk("0")), c.Do("CONFIG", "GET", "timeout"))
			require.False(t, s.OpenAt(free), "%s", pairs)
			require.True(t, s.OpenAt(plainPort))
			require.True(t, s.Serves(s.Authority.Client()))
		}
	})
}

// loopback is the host of a server without another setting.
const loopback = "127.0.0.1"

// assemble assembles a server with a configuration file on the network of w.
func assemble(t *testing.T, w *inproc.World, file string) *server.Server {
	t.Helper()
	c, err := config.Load([]string{file}, nil)
	require.NoError(t, err)
	s, err := server.New(c, server.Options{
		Log:    slog.New(slog.DiscardHandler),
		Listen: func(_, address string) (net.Listener, error) { return w.Net.Listen(address) },
		Dial:   w.Dialer(loopback),
	})
	require.NoError(t, err)
	return s
}

// open reports whether the server listens on a port.
func open(t *testing.T, w *inproc.World, port string) bool {
	t.Helper()
	conn, err := w.Net.Dial(t.Context(), loopback, net.JoinHostPort(loopback, port))
	return err == nil && conn.Close() == nil
}

// dialPort connects a client to a port of the server.
func dialPort(t *testing.T, w *inproc.World, port string) *inproc.Client {
	t.Helper()
	conn, err := w.Net.Dial(t.Context(), loopback, net.JoinHostPort(loopback, port))
	require.NoError(t, err)
	return inproc.NewClient(t, conn)
}

// TestReloadOfPort: a reload opens the port that the file names, or changes nothing if there is a
// fault.
func TestReloadOfPort(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const first, second, taken = "7001", "7002", "7003"
		other, err := w.Net.Listen(net.JoinHostPort(loopback, taken))
		require.NoError(t, err)
		defer func() { require.NoError(t, other.Close()) }()
		file := filepath.Join(t.TempDir(), "cellserver.conf")
		write := func(lines string) {
			t.Helper()
			require.NoError(t, os.WriteFile(file, []byte("bind 127.0.0.1\n"+lines+"transport goroutine\n"), 0o600))
		}
		write("port " + first + "\n")
		s := assemble(t, w, file)
		defer run(t, s)()
		admin := dialPort(t, w, first)
		write("port " + second + "\n")
		require.Equal(t, inproc.OK, admin.Do("CONFIG", "RELOAD"))
		require.True(t, open(t, w, second))
		require.False(t, open(t, w, first))
		for want, lines := range map[string]string{
			file + ":2: Unable to listen on this port": "port " + taken + "\n",
			"timeout":                     "port " + first + "\ntimeout x\n",
			"nothing to listen on":        "port 0\n",
			"no tls-cert-file configured": "port " + first + "\ntls-port 7004\n",
		} {
			write(lines)
			require.Contains(t, admin.Do("CONFIG", "RELOAD"), want)
			require.False(t, open(t, w, first), lines)
			require.True(t, open(t, w, second), lines)
			require.Equal(t, second, admin.Info("tcp_port"))
		}
		write("port " + first + "\ntimeout 9\n")
		require.NoError(t, s.Reload("test"))
		require.Equal(t, inproc.Array(inproc.Bulk("timeout"), inproc.Bulk("9")), dialPort(t, w, first).Do("CONFIG", "GET", "timeout"))
	})
}

// TestReloadBeforeRun: the port changes between New and Run.
func TestReloadBeforeRun(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const first, second = "7001", "7002"
		file := writeConfig(t, "transport goroutine\nbind 127.0.0.1\nport "+first+"\n")
		s := assemble(t, w, file)
		require.NoError(t, os.WriteFile(file, []byte("transport goroutine\nbind 127.0.0.1\nport "+second+"\n"), 0o600))
		require.NoError(t, s.Reload("test"))
		require.False(t, open(t, w, first))
		stop := run(t, s)
		require.Equal(t, "+PONG\r\n", dialPort(t, w, second).Do("PING"))
		stop()
		require.False(t, open(t, w, second))
	})
}

// TestPortsChangeUnderLoad: the port changes repeatedly while clients connect and send commands. A
// client that has had one reply keeps getting replies.
func TestPortsChangeUnderLoad(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		admin := s.Dial()
		ports := make(chan string, 1)
		ended := make(chan int, 1)
		go func() {
			answered := 0
			for port := range ports {
				nc, err := w.Net.Dial(context.Background(), s.Host, net.JoinHostPort(s.Host, port))
				if err != nil {
					continue // the next port is open by now
				}
				c := inproc.NewClient(t, nc)
				for range 5 {
					if _, err := nc.Write([]byte("PING\r\n")); err != nil {
						break
					}
					if _, err := c.R.ReadString('\n'); err != nil {
						break
					}
					answered++
				}
				_ = nc.Close()
			}
			ended <- answered
		}()
		for i := range 20 {
			port := strconv.Itoa(7000 + i)
			require.Equal(t, inproc.OK, admin.Do("CONFIG", "SET", "port", port))
			ports <- port
		}
		close(ports)
		require.Positive(t, <-ended)
		require.True(t, s.OpenAt(admin.Info("tcp_port")))
	})
}

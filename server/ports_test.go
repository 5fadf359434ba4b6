package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/server"
)

// openAt reports whether anybody listens at a port.
func openAt(port string) bool {
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	return err == nil && c.Close() == nil
}

// portOf is the port of an address.
func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	return port
}

// taken returns a port that another listens at.
func taken(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return portOf(t, l.Addr().String())
}

// TestConfigSetPort: the port without TLS and the one with it change while the server runs; who
// is connected stays, and the old port is closed.
func TestConfigSetPort(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		s := startTLS(t, kind)
		old, oldSecure := dial(t, "tcp", s.plain), s.dial(s.authority.Client())
		require.Equal(t, "+PONG\r\n", oldSecure.do("PING"))
		for range 3 {
			before, secureBefore := s.plain, s.secure
			port, secure := freeport.Choose(), freeport.Choose()
			require.Equal(t, okReply, old.do("CONFIG", "SET", "port", port))
			require.Equal(t, port, old.info("tcp_port"))
			require.Equal(t, okReply, old.do("CONFIG", "SET", "TLS-PORT", secure, "timeout", "0"))
			s.plain, s.secure = net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("127.0.0.1", secure)
			require.Equal(t, array(bulk("tls-port"), bulk(secure)), old.do("CONFIG", "GET", "tls-port"))
			require.Equal(t, "+PONG\r\n", dial(t, "tcp", s.plain).do("PING"))
			require.True(t, s.served(s.authority.Client()))
			require.Equal(t, "+PONG\r\n", oldSecure.do("PING"))
			require.False(t, openAt(portOf(t, before)))
			require.False(t, openAt(portOf(t, secureBefore)))
		}
		// One of them is enough, and the last is not closed.
		require.Equal(t, okReply, old.do("CONFIG", "SET", "port", "0"))
		require.False(t, openAt(portOf(t, s.plain)))
		require.Equal(t, portOf(t, s.secure), old.info("tcp_port"))
		require.Contains(t, old.do("CONFIG", "SET", "tls-port", "0"), "nothing to listen on")
		require.True(t, s.served(s.authority.Client()))
		require.Equal(t, okReply, old.do("CONFIG", "SET", "port", portOf(t, s.plain), "tls-port", "0"))
		require.Equal(t, "+PONG\r\n", dial(t, "tcp", s.plain).do("PING"))
		require.False(t, openAt(portOf(t, s.secure)))
		require.Equal(t, "+PONG\r\n", oldSecure.do("PING"))
		require.Equal(t, okReply, old.do("CONFIG", "SET", "tls-port", portOf(t, s.secure)), "the same port again")
		require.True(t, s.served(s.authority.Client()))
	})
}

// TestClosingThePortWithTLSLetsNobodyInWithoutACertificate: the certificates of the admin port, which
// asks for none in return, are read again before the port of clients is closed.
func TestClosingThePortWithTLSLetsNobodyInWithoutACertificate(t *testing.T) {
	s := startTLS(t, "auto", "--tls-auth-clients", "yes", "--admin-port", freeport.Choose(), "--admin-tls", "yes")
	c := dial(t, "tcp", s.plain)
	for _, port := range []string{"0", portOf(t, s.secure), "0", freeport.Choose()} {
		require.Equal(t, tls.RequireAndVerifyClientCert, s.ClientAuth())
		require.Equal(t, okReply, c.do("CONFIG", "SET", "tls-port", port))
	}
	require.Equal(t, tls.RequireAndVerifyClientCert, s.ClientAuth())
}

// TestRefusedPortChangesNothing: a port that another has, a certificate that cannot be read and
// an option that does not exist leave what was open as it was, and nothing else open.
func TestRefusedPortChangesNothing(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		s := startTLS(t, kind)
		c := dial(t, "tcp", s.plain)
		before := []string{c.do("CONFIG", "GET", "*port"), c.do("CONFIG", "GET", "tls-*")}
		other, free := taken(t), freeport.Choose()
		for want, pairs := range map[string][]string{
			"argument 'port') - Unable to listen on this port: listening on 127.0.0.1": {"timeout", "5", "port", other},
			"argument 'tls-port') - Unable to listen on this port":                     {"tls-port", other},
			"Unable to listen on this port: listening on":                              {"port", free, "tls-port", other},
			"argument 'tls-cert-file') - ":                                             {"port", free, "tls-cert-file", "/no/such/file"},
			"argument couldn't be parsed into an integer":                              {"port", free, "timeout", "x"},
			"argument must be between 0 and 65535":                                     {"port", "65536"},
		} {
			require.Contains(t, c.do(append([]string{"CONFIG", "SET"}, pairs...)...), want, "%s", pairs)
			require.Equal(t, before[0], c.do("CONFIG", "GET", "*port"))
			require.Equal(t, before[1], c.do("CONFIG", "GET", "tls-*"))
			require.Equal(t, array(bulk("timeout"), bulk("0")), c.do("CONFIG", "GET", "timeout"))
			require.False(t, openAt(free), "%s", pairs)
			require.True(t, openAt(portOf(t, s.plain)))
			require.True(t, s.served(s.authority.Client()))
		}
	})
}

// TestReloadOfPort: a reload opens the port that the file names, or changes nothing, whatever
// the fault is.
func TestReloadOfPort(t *testing.T) {
	file, first, second := filepath.Join(t.TempDir(), "cellserver.conf"), freeport.Choose(), freeport.Choose()
	write := func(lines string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte("bind 127.0.0.1\n"+lines), 0o600))
	}
	write("port " + first + "\n")
	c, err := config.Load([]string{file}, nil)
	require.NoError(t, err)
	s, err := server.New(c, server.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	defer func() {
		s.Stop()
		require.NoError(t, <-done)
	}()
	admin := dial(t, "tcp", "127.0.0.1:"+first)
	write("port " + second + "\n")
	require.Equal(t, okReply, admin.do("CONFIG", "RELOAD"))
	require.True(t, openAt(second))
	require.False(t, openAt(first))
	for want, lines := range map[string]string{
		file + ":2: Unable to listen on this port": "port " + taken(t) + "\n",
		"timeout":                     "port " + first + "\ntimeout x\n",
		"nothing to listen on":        "port 0\n",
		"no tls-cert-file configured": "port " + first + "\ntls-port " + freeport.Choose() + "\n",
	} {
		write(lines)
		require.Contains(t, admin.do("CONFIG", "RELOAD"), want)
		require.False(t, openAt(first), lines)
		require.True(t, openAt(second), lines)
		require.Equal(t, second, admin.info("tcp_port"))
	}
	write("port " + first + "\ntimeout 9\n")
	require.NoError(t, s.Reload("test"))
	require.Equal(t, array(bulk("timeout"), bulk("9")), dial(t, "tcp", "127.0.0.1:"+first).do("CONFIG", "GET", "timeout"))
}

// TestReloadBeforeRun: a port that changes between the assembly of a server and its start.
func TestReloadBeforeRun(t *testing.T) {
	first, second := freeport.Choose(), freeport.Choose()
	file := writeConfig(t, "bind 127.0.0.1\nport "+first+"\n")
	c, err := config.Load([]string{file}, nil)
	require.NoError(t, err)
	s, err := server.New(c, server.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte("bind 127.0.0.1\nport "+second+"\n"), 0o600))
	require.NoError(t, s.Reload("test"))
	require.False(t, openAt(first))
	stop := run(t, s)
	require.Equal(t, "+PONG\r\n", dial(t, "tcp", "127.0.0.1:"+second).do("PING"))
	stop()
	require.False(t, openAt(second))
}

// TestPortsChangeUnderLoad: the port changes again and again while clients connect and call;
// whoever has been answered once is answered on.
func TestPortsChangeUnderLoad(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		s := startTLS(t, kind)
		admin := dial(t, "tcp", s.plain)
		ports := make(chan string, 1)
		ended := make(chan int, 1)
		go func() {
			answered := 0
			for port := range ports {
				nc, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
				if err != nil {
					continue // the next port is open by now
				}
				_ = nc.SetDeadline(time.Now().Add(patience))
				r := bufio.NewReader(nc)
				for range 5 {
					if _, err := nc.Write([]byte("PING\r\n")); err != nil {
						break
					}
					if _, err := r.ReadString('\n'); err != nil {
						break
					}
					answered++
				}
				_ = nc.Close()
			}
			ended <- answered
		}()
		for range 20 {
			port := freeport.Choose()
			require.Equal(t, okReply, admin.do("CONFIG", "SET", "port", port))
			ports <- port
		}
		close(ports)
		require.Positive(t, <-ended)
		now, err := strconv.Atoi(admin.info("tcp_port"))
		require.NoError(t, err)
		require.True(t, openAt(strconv.Itoa(now)))
	})
}

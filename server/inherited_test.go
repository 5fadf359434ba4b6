package server_test

import (
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// handed opens an address on the bubble's network and passes it to the server in place of an
// option.
func handed(t *testing.T, w *inproc.World, option, address string) func(*server.Options) {
	t.Helper()
	l, err := w.Net.Listen(address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() }) // a running server has closed it
	return func(o *server.Options) { o.Inherited = map[string][]net.Listener{option: {l}} }
}

// TestInheritedSocketsAreServed: each replaces the option that it is for, and no other.
func TestInheritedSocketsAreServed(t *testing.T) {
	const socket = "127.0.0.1:7000"
	for _, option := range []string{"port", "tls-port", "admin-port", "unixsocket"} {
		t.Run(option, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				authority := certtest.New(t)
				own := authority.Issue(t, certtest.Subject{Name: "server"})
				n := w.StartWith(handed(t, w, option, socket), "--tls-port", "7001", "--admin-port", "7002", "--tls-auth-clients", "no",
					"--tls-cert-file", own.CertFile, "--tls-key-file", own.KeyFile)
				for name, port := range map[string]string{"port": "6379", "tls-port": "7001", "admin-port": "7002"} {
					conn, err := w.Net.Dial(t.Context(), n.Host, net.JoinHostPort(n.Host, port))
					if name == option {
						require.ErrorContains(t, err, "refused", name)
						continue
					}
					require.NoError(t, err, name)
					require.NoError(t, conn.Close())
				}
				switch option {
				case "port", "unixsocket":
					require.Equal(t, "+PONG\r\n", n.DialAt(n.Host, socket).Do("PING"))
				case "tls-port":
					c := n.DialAt(n.Host, socket)
					c.Send("PING\r\n")
					require.Contains(t, c.Reply(), "this port speaks TLS")
					c.ExpectEnd()
				case "admin-port":
					reply, err := w.HTTP(n.Host).Get("http://" + socket + "/healthz")
					require.NoError(t, err)
					require.NoError(t, reply.Body.Close())
					require.Equal(t, http.StatusOK, reply.StatusCode)
				}
			})
		})
	}
}

// TestInheritedSocketsAreRefused: the server refuses sockets for which the configuration has no
// use, or that nothing protects.
func TestInheritedSocketsAreRefused(t *testing.T) {
	for _, c := range []struct {
		option, address string
		options         []string
		want            string // "" if it is served
	}{
		{"tls-port", "127.0.0.1:7000", nil, "a socket was handed over for tls-port, which is 0"},
		{"admin-port", "127.0.0.1:7000", nil, "a socket was handed over for admin-port, which is 0"},
		{"bind", "127.0.0.1:7000", nil, `a socket was handed over for "bind"`},
		{"admin-port", "10.0.0.1:7000", []string{"--admin-port", "7002"}, "lets other machines in without a password"},
		{"admin-port", "10.0.0.1:7000", []string{"--admin-port", "7002", "--requirepass", "secret"}, ""},
		{"port", "10.0.0.1:7000", nil, ""}, // protected-mode then serves only this machine
	} {
		inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
			n := w.Node(handed(t, w, c.option, c.address), c.options...)
			err := n.Run()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestInheritedAdminPortNeedsNoAdminBind: the server opens no address of the configuration in
// addition.
func TestInheritedAdminPortNeedsNoAdminBind(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := w.StartWith(handed(t, w, "admin-port", "127.0.0.1:7000"), "--admin-port", "7002", "--admin-bind", "")
		reply, err := w.HTTP(n.Host).Get("http://127.0.0.1:7000/healthz")
		require.NoError(t, err)
		require.NoError(t, reply.Body.Close())
		require.Equal(t, http.StatusOK, reply.StatusCode)
	})
}

// TestInheritedSocketThatIsReachableIsLogged: the log warns of a socket that other machines can use
// without a password.
func TestInheritedSocketThatIsReachableIsLogged(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := w.StartWith(handed(t, w, "port", "10.0.0.1:7000"), "--protected-mode", "no")
		require.Contains(t, n.Log.String(), "anybody who can reach this server has full access")
		require.Contains(t, n.Log.String(), "10.0.0.1:7000")
	})
}

package transport_test

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/inproc"
	cellserver "github.com/cellserver/cellserver/server"
)

// replicating is a server with the clock of the machine, which replication needs, on a port without
// TLS and perhaps on one with TLS.
type replicating struct {
	*inproc.Served
	secure string // the address of the TLS port
}

func serveReplicating(t *testing.T, kind string, options ...string) *replicating {
	t.Helper()
	var mu sync.Mutex
	opened := map[string]net.Listener{} // guarded by mu, by the port of the options
	r := &replicating{}
	r.Served = inproc.ServeWith(t, kind, func(o *cellserver.Options) {
		o.Clock = nil
		_ = o.Listeners[0].Close() // nothing has connected
		o.Listeners = nil
		o.Listen = func(_, address string) (net.Listener, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			mu.Lock()
			defer mu.Unlock()
			opened[port] = l
			return l, err
		}
	}, append([]string{"--bind", "127.0.0.1"}, options...)...)
	mu.Lock()
	defer mu.Unlock()
	if l := opened["6380"]; l != nil {
		r.secure = l.Addr().String()
	}
	return r
}

// TestReplicaOfEachTransport: a replica receives the keys of its primary over sockets with and
// without TLS, before and after its link is cut, and replies wait for it. It becomes a primary on
// command.
func TestReplicaOfEachTransport(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run("TLS "+strconv.FormatBool(secure), func(t *testing.T) {
			inproc.EachTransport(t, func(t *testing.T, kind string) {
				var options []string
				if secure {
					authority := certtest.New(t)
					pair := authority.Issue(t, certtest.Subject{Name: "server"})
					options = []string{
						"--tls-port", "6380", "--tls-auth-clients", "yes", "--tls-replication", "yes", "--tls-ca-cert-file", authority.File,
						"--tls-cert-file", pair.CertFile, "--tls-key-file", pair.KeyFile,
					}
				}
				primary, replica := serveReplicating(t, kind, options...), serveReplicating(t, kind, options...)
				address := primary.Addr().String()
				if secure {
					address = primary.secure
				}
				host, port, err := net.SplitHostPort(address)
				require.NoError(t, err)

				c, r := primary.Dial(), replica.Dial()
				long := strings.Repeat("x", 1<<20)
				for i := range 8 { // more than the buffers of a socket
					require.Equal(t, inproc.OK, c.Do("SET", "before"+strconv.Itoa(i), long))
				}
				require.Contains(t, r.Do("REPLICAOF", host, port), "+OK")
				up := func() {
					t.Helper()
					inproc.Await(t, "the link is up", func() bool { return r.Info("master_link_status") == "up" })
				}
				up()
				require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "repl-ack-replies", "1", "repl-ack-timeout", "60000"))
				for i := range 100 {
					n := strconv.Itoa(i + 1)
					require.Equal(t, ":"+n+"\r\n", c.Do("INCR", "n"))
					require.Equal(t, inproc.Bulk(n), r.Do("GET", "n"), "the replica had it before")
				}
				require.Equal(t, ":1\r\n", c.Do("CLIENT", "KILL", "TYPE", "replica"))
				require.Equal(t, inproc.OK, c.Do("SET", "behind", long[:1000])) // after the replica has reconnected
				up()
				require.Equal(t, ":1\r\n", c.Do("WAIT", "1", "0"))
				require.Equal(t, "1", c.Info("sync_full"))
				require.Equal(t, inproc.Bulk(long[:1000]), r.Do("GET", "behind"))
				require.Equal(t, ":10\r\n", r.Do("DBSIZE"))

				require.Equal(t, inproc.OK, r.Do("REPLICAOF", "NO", "ONE"))
				inproc.Await(t, "a primary", func() bool { return r.Info("role") == "master" })
				require.Equal(t, ":101\r\n", r.Do("INCR", "n"))
			})
		})
	}
}

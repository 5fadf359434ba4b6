package transport_test

import (
	"bufio"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// inPieces writes in pieces that next chooses, and remembers what was read.
type inPieces struct {
	net.Conn
	next func(left int) int
	mu   sync.Mutex
	read []byte // guarded by mu
}

func (p *inPieces) Write(b []byte) (int, error) {
	for at := 0; at < len(b); {
		n, err := p.Conn.Write(b[at : at+p.next(len(b)-at)])
		if at += n; err != nil {
			return at, err
		}
	}
	return len(b), nil
}

func (p *inPieces) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	p.mu.Lock()
	p.read = append(p.read, b[:n]...)
	p.mu.Unlock()
	return n, err
}

// dialInPieces connects with TLS over a connection that writes in pieces.
func (r *rig) dialInPieces(next func(left int) int) (*client, *inPieces) {
	r.t.Helper()
	nc, err := net.Dial("tcp", r.addr.String())
	require.NoError(r.t, err)
	r.t.Cleanup(func() { nc.Close() })
	p := &inPieces{Conn: nc, next: next}
	secure := tls.Client(p, r.tr.(*overTLS).client)
	return &client{t: r.t, Conn: secure, r: bufio.NewReader(secure)}, p
}

// everyTLS runs test for each transport and version.
func everyTLS(t *testing.T, test func(t *testing.T, f factory)) {
	for name, f := range transportsOf(t) {
		for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(name+" "+tls.VersionName(v), func(t *testing.T) { test(t, secured(t, f, v)) })
		}
	}
}

// TestTLSRecordsInAnyPieces: records that arrive byte by byte, in random pieces, and several
// at once mean the same.
func TestTLSRecordsInAnyPieces(t *testing.T) {
	everyTLS(t, func(t *testing.T, f factory) {
		r := start(t, f, newLineHandler(), patientLimits())
		seed := rand.Uint64()
		t.Log("seed", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		one, _ := r.dialInPieces(func(int) int { return 1 })
		one.send("echo 1", "echo 2")
		one.expect("1", "2")
		long := strings.Repeat("L", 40_000) // three records
		c, _ := r.dialInPieces(func(left int) int { return 1 + rng.IntN(left) })
		for range 20 {
			c.send("echo 1", "echo "+long, "echo 2")
			c.expect("1", long, "2")
		}
	})
}

// TestTLSEndsWithCloseNotify: a client whose session closes, or that has sent all, gets an alert
// in front of the end, so that no machine between can make the end.
func TestTLSEndsWithCloseNotify(t *testing.T) {
	const alert = 21
	for name, f := range transportsOf(t) {
		t.Run(name, func(t *testing.T) {
			r := start(t, secured(t, f, tls.VersionTLS12), newLineHandler(), patientLimits())
			for _, end := range []func(c *client){
				func(c *client) { c.send("bye"); c.expect("bye") },
				func(c *client) { require.NoError(t, c.closeWrite()) },
			} {
				c, raw := r.dialInPieces(func(left int) int { return left })
				c.send("echo 1")
				c.expect("1")
				end(c)
				c.expectEnd()
				last := byte(0)
				for rest := raw.read; len(rest) >= 5; {
					last = rest[0]
					rest = rest[5+int(rest[3])<<8+int(rest[4]):]
				}
				require.EqualValues(t, alert, last, "the type of the last record")
			}
		})
	}
}

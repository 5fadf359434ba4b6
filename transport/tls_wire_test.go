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

	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// inPieces writes in pieces whose lengths next chooses, and records what was read.
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

// dialInPieces opens a TLS connection that writes in pieces.
func dialInPieces(r *transporttest.Rig, next func(left int) int) (*transporttest.Client, *inPieces) {
	r.T.Helper()
	nc, err := net.Dial("tcp", r.Addr.String())
	require.NoError(r.T, err)
	r.T.Cleanup(func() { nc.Close() })
	p := &inPieces{Conn: nc, next: next}
	secure := tls.Client(p, r.Transport.(*transporttest.OverTLS).ClientConfig)
	return &transporttest.Client{T: r.T, Conn: secure, Reader: bufio.NewReader(secure)}, p
}

// everyTLS runs test for each transport and version.
func everyTLS(t *testing.T, test func(t *testing.T, f transporttest.Factory)) {
	for name, f := range transportsOf(t) {
		for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(name+" "+tls.VersionName(v), func(t *testing.T) { test(t, transporttest.Secured(t, f, v)) })
		}
	}
}

// TestTLSRecordsInAnyPieces: records have the same effect if they arrive byte by byte, in random
// pieces, or several at once.
func TestTLSRecordsInAnyPieces(t *testing.T) {
	everyTLS(t, func(t *testing.T, f transporttest.Factory) {
		r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
		seed := rand.Uint64()
		t.Log("seed", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		one, _ := dialInPieces(r, func(int) int { return 1 })
		one.Send("echo 1", "echo 2")
		one.Expect("1", "2")
		long := strings.Repeat("L", 40_000) // three records
		c, _ := dialInPieces(r, func(left int) int { return 1 + rng.IntN(left) })
		for range 20 {
			c.Send("echo 1", "echo "+long, "echo 2")
			c.Expect("1", long, "2")
		}
	})
}

// TestTLSEndsWithCloseNotify: a client whose session closes, or that has closed its sending side,
// gets an alert before the end of the connection, so that no attacker can fake that end.
func TestTLSEndsWithCloseNotify(t *testing.T) {
	const alert = 21
	for name, f := range transportsOf(t) {
		t.Run(name, func(t *testing.T) {
			r := transporttest.Start(t, transporttest.Secured(t, f, tls.VersionTLS12), transporttest.NewLineHandler(), transporttest.PatientLimits())
			for _, end := range []func(c *transporttest.Client){
				func(c *transporttest.Client) { c.Send("bye"); c.Expect("bye") },
				func(c *transporttest.Client) { require.NoError(t, c.CloseWrite()) },
			} {
				c, raw := dialInPieces(r, func(left int) int { return left })
				c.Send("echo 1")
				c.Expect("1")
				end(c)
				c.ExpectEnd()
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

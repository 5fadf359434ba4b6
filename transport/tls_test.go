package transport_test

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// runTLS checks a transport's guarantees over TLS 1.3 and 1.2. Tests that are only about the bytes
// of plain sockets have counterparts in this package.
func runTLS(t *testing.T, f transporttest.Factory) {
	for _, v := range []uint16{tls.VersionTLS13, tls.VersionTLS12} {
		t.Run(tls.VersionName(v), func(t *testing.T) {
			for _, c := range conformance {
				if c.plain || v == tls.VersionTLS12 && c.slow {
					continue
				}
				t.Run(c.name, func(t *testing.T) { c.test(t, transporttest.Secured(t, f, v)) })
			}
		})
	}
}

func TestGoroutineConformanceOverTLS(t *testing.T) { runTLS(t, newGoroutine) }

// TestGoroutineServesTLS: a wake interrupts a blocked read in the middle of any TLS record.
func TestGoroutineServesTLS(t *testing.T) {
	serverConf, clientConf := transporttest.SelfSigned(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := transporttest.StartOn(t, newGoroutine, transporttest.NewLineHandler(), transporttest.PatientLimits(), tls.NewListener(l, serverConf))
	c := r.DialTLS(clientConf)
	large := strings.Repeat("L", 300_000)
	for range 50 {
		c.Send("echo 1")
		r.Session(0).Push("pushed")
		got := []string{}
		for range 2 {
			line, err := c.Reader.ReadString('\n')
			require.NoError(t, err)
			got = append(got, line)
		}
		require.ElementsMatch(t, []string{"1\n", "pushed\n"}, got)
	}
	c.Send("echo "+large, "park a", "echo 2")
	c.Expect(large)
	r.Await(func() bool { return r.Handler.IsParked("a") })
	r.Handler.Finish("a", "A")
	c.Expect("A", "2")
	c.Send("echo 3", "bye")
	c.Expect("3", "bye")
	c.ExpectEnd()

	d := r.DialTLS(clientConf)
	d.Send("echo 1")
	d.Expect("1")
	r.Session(1).Peer.Abort()
	r.Await(r.Session(1).Gone.Load)
}

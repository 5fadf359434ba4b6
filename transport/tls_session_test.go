package transport_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

const ok = "+OK\r\n"

// TestTLSServesNoClientWithoutTLS: a client that does not speak TLS gets an explanation.
func TestTLSServesNoClientWithoutTLS(t *testing.T) {
	everyTLS(t, func(t *testing.T, f transporttest.Factory) {
		e := serve(t, f)
		nc, err := net.Dial("tcp", e.addr.String())
		require.NoError(t, err)
		defer nc.Close()
		_, err = io.WriteString(nc, "PING\r\n")
		require.NoError(t, err)
		answer, err := io.ReadAll(nc)
		require.NoError(t, err)
		require.Contains(t, string(answer), "-ERR this port speaks TLS")
		require.Equal(t, pong, e.dial().Do("PING"))
	})
}

// TestTLSMemoryOfClients: the buffer that TLS reads records into counts as memory of the client.
func TestTLSMemoryOfClients(t *testing.T) {
	everyTLS(t, func(t *testing.T, f transporttest.Factory) {
		e := serve(t, func(h transport.Handler, lim transport.Limits, clock *transporttest.Clock) transport.Transport {
			over := f(h, lim, clock).(*transporttest.OverTLS)
			over.ClientConfig.DynamicRecordSizingDisabled = true // otherwise a client of Go begins with short records
			return over
		})
		c := e.dial()
		require.Equal(t, ok, c.Do("SET", "k", strings.Repeat("v", 15<<10)))
		eventually(t, "counted", func() bool { input, _ := e.LargestBuffers(); return input >= 14<<10 })
	})
}

// TestTLSOfCommandsThatLeaveTheLoop: blocked commands, commands that run in the background and
// commands of many turns reply in order over TLS, while records of later commands arrive.
func TestTLSOfCommandsThatLeaveTheLoop(t *testing.T) {
	everyTLS(t, func(t *testing.T, f transporttest.Factory) {
		e := serve(t, f)
		c, other := e.dial(), e.dial()
		c.Command("CONFIG", "RELOAD") // runs on a goroutine of its own
		c.Command("ECHO", "a")
		c.Command("EVAL", "local n = 0 for i = 1, 300000 do n = n + 1 end return n", "0")
		c.Command("ECHO", "b")
		c.Command("BLPOP", "queue", "0")
		c.Command("ECHO", "c")
		c.Expect(ok, inproc.Bulk("a"), ":300000\r\n", inproc.Bulk("b"))
		c.Command("ECHO", strings.Repeat("d", 50_000)) // while it waits
		require.Equal(t, ":1\r\n", other.Do("RPUSH", "queue", "x"))
		c.Expect(inproc.Array(inproc.Bulk("queue"), inproc.Bulk("x")), inproc.Bulk("c"), inproc.Bulk(strings.Repeat("d", 50_000)))
	})
}

// TestHalfHandshakesEnd: a client that begins a handshake and does not continue is closed. Other
// clients are served before and after.
func TestHalfHandshakesEnd(t *testing.T) {
	for name, f := range transportsOf(t) {
		t.Run(name, func(t *testing.T) {
			lim := transporttest.PatientLimits()
			lim.Handshake = 20 * time.Millisecond
			r := transporttest.Start(t, transporttest.Secured(t, f, tls.VersionTLS13), transporttest.NewLineHandler(), lim)
			for range 3 {
				nc, err := net.Dial("tcp", r.Addr.String())
				require.NoError(t, err)
				_, err = nc.Write([]byte{22, 3, 1}) // the beginning of a record
				require.NoError(t, err)
				_, _ = io.Copy(io.Discard, nc) // until the server closes or resets it
				require.NoError(t, nc.Close())
			}
			r.Transport.SetLimits(transporttest.PatientLimits())
			c := r.Dial()
			c.Send("echo 1")
			c.Expect("1")
			r.Eventually(func() bool { return r.Transport.Stats().Connections == 1 })
		})
	}
}

// TestShutdownWithManyHalfHandshakes: Shutdown ends running and waiting handshakes.
func TestShutdownWithManyHalfHandshakes(t *testing.T) {
	for name, f := range transportsOf(t) {
		t.Run(name, func(t *testing.T) {
			r := transporttest.Start(t, transporttest.Secured(t, f, tls.VersionTLS13), transporttest.NewLineHandler(), transporttest.PatientLimits())
			const halves = 80 // 64 begin at once
			for range halves {
				nc, err := net.Dial("tcp", r.Addr.String())
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, nc.Close()) })
			}
			r.Eventually(func() bool { return r.Transport.Stats().Accepted == halves })
			require.NoError(t, <-r.Stop(context.Background()))
		})
	}
}

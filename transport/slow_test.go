package transport_test

import (
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func testSlowReaders(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	const readers = 50
	before := heap()
	for i := range readers {
		c := r.Dial()
		r.Session(i)
		c.Send(strings.Repeat("big 1000000\n", 40))
	}
	other := r.Dial()
	stuck := func() bool { // each has a reply that the kernel does not accept
		for _, s := range r.Handler.Sessions()[:readers] {
			if _, output := s.Peer.Held(); output == 0 {
				return false
			}
		}
		return true
	}
	held, pending := int64(0), int64(0)
	r.Eventually(func() bool {
		other.Send("echo 1")
		other.Expect("1") // a slow client never delays another
		r.Pass(0)
		out := r.Transport.Stats().BytesOut
		held, pending = heap()-before, r.Transport.Stats().Pending
		r.Pass(0)
		// While bytes are being sent, garbage counts, too.
		return stuck() && r.Transport.Stats().BytesOut == out
	})
	t.Logf("%.1f MiB of heap, %.1f MiB pending", float64(held)/(1<<20), float64(pending)/(1<<20))
	bound := int64(50 << 20)
	if _, ok := r.Transport.(*transporttest.OverTLS); ok {
		bound += readers * 128 << 10 // buffers of crypto/tls, and records
	}
	require.LessOrEqual(t, held, bound)
	require.LessOrEqual(t, pending, bound)

	r.Pass(r.Limits.WriteTimeout / 2)
	require.Zero(t, r.Transport.Stats().SlowClosed)
	r.Eventually(func() bool {
		r.Pass(r.Limits.WriteTimeout)
		return r.Transport.Stats().SlowClosed == readers && r.Transport.Stats().Connections == 1
	})
	other.Send("echo 1")
	other.Expect("1")
}

// testSteadyReader reads 128 KiB between two sweeps of the transport, for three times the timeout,
// and then the rest.
func testSteadyReader(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	c := r.Dial()
	require.NoError(t, c.TCP().SetReadBuffer(256<<10))
	const size, looks = 12 << 20, 3 * 8
	c.Send("big " + strconv.Itoa(size))
	r.Eventually(func() bool { return r.Transport.Stats().Pending > 0 })
	part := make([]byte, 128<<10)
	for range looks {
		_, err := io.ReadFull(c.Reader, part)
		require.NoError(t, err)
		r.Pass(r.Limits.WriteTimeout / 8)
	}
	_, err := io.CopyN(io.Discard, c.Reader, size+1-looks*int64(len(part)))
	require.NoError(t, err)
	require.Zero(t, r.Transport.Stats().SlowClosed)
}

func testFlood(t *testing.T, f transporttest.Factory) {
	lim := transporttest.PatientLimits()
	lim.WriteTimeout = transporttest.Patience
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), lim)
	c := r.Dial()
	go func() {
		flood := []byte(strings.Repeat("big 1000\n", 10_000))
		for {
			if _, err := c.Write(flood); err != nil {
				return // the test is over
			}
		}
	}()
	most := int64(0)
	r.Eventually(func() bool {
		s := r.Transport.Stats()
		most = max(most, s.Pending)
		return s.Pending > 0 && s.BytesOut > 1<<20
	})
	// One turn may begin just below the backlog.
	for range 200 {
		most = max(most, r.Transport.Stats().Pending)
		runtime.Gosched()
	}
	require.LessOrEqual(t, most, int64(lim.Backlog+transporttest.TurnBytes+1001))
	r.Session(0).Peer.Abort()
}

func testFairness(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	var group sync.WaitGroup
	var floods []*transporttest.Client
	for range 8 {
		c := r.Dial()
		floods = append(floods, c)
		group.Go(func() {
			flood := []byte(strings.Repeat("echo 0123456789\n", 10_000))
			for {
				if _, err := c.Write(flood); err != nil {
					return // the test is over
				}
			}
		})
		group.Go(func() { io.Copy(io.Discard, c.Reader) })
	}
	c := r.Dial()
	for range 40 {
		c.Send("echo 1")
		c.Expect("1")
	}
	for _, f := range floods {
		f.Close()
	}
	group.Wait()
}

func testSetLimits(t *testing.T, f transporttest.Factory) {
	lim := transporttest.PatientLimits()
	lim.WriteTimeout = transporttest.Patience
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), lim)
	c := r.Dial()
	c.Send("big 50000000")
	r.Eventually(func() bool { return r.Transport.Stats().Pending > 0 })
	r.Pass(r.Limits.WriteTimeout / 2)
	require.Zero(t, r.Transport.Stats().SlowClosed)
	lim.WriteTimeout /= 1000
	r.Transport.SetLimits(lim)
	r.Limits = lim
	r.Eventually(func() bool { r.Pass(lim.WriteTimeout); return r.Transport.Stats().SlowClosed == 1 })
	r.Await(r.Session(0).Gone.Load)
}

// testPressed: while the handler is short of memory, a client that does not read a counted reply is
// closed long before the write timeout. A client that gets a value of the keyspace is not.
func testPressed(t *testing.T, f transporttest.Factory) {
	lim := transporttest.PatientLimits()
	lim.WriteTimeout = time.Minute
	h := transporttest.NewLineHandler()
	const large, look = 32 << 20, time.Second // more than a socket takes; how often the transport sweeps
	h.OnRefer = func(turn *transport.Turn, n int) {
		if n != large {
			h.Refer(turn, large)
			return
		}
		h.Ledger.Count(large)
		r := shared.Own(make([]byte, large), &h.Ledger, large)
		r.At = len(turn.Out)
		turn.Refs = append(turn.Refs, r)
		turn.Out = append(turn.Out, '\n')
	}
	r := transporttest.Start(t, f, h, lim)
	h.ShortOfMemory.Store(true)
	value := r.Dial()
	value.Send("refer 1")
	r.Eventually(func() bool { return r.Transport.Stats().BytesOut > 1<<16 })
	r.Pass(lim.WriteTimeout * 3 / 4)
	require.Zero(t, r.Transport.Stats().SlowClosed, "the value stays")
	require.Positive(t, h.Ledger.Sum.Load())
	require.NoError(t, value.Close())
	r.Await(r.Session(0).Gone.Load)
	r.Eventually(func() bool { return h.Ledger.Sum.Load() == 0 })

	own := r.Dial()
	own.Send("refer " + strconv.Itoa(large))
	stuck, moved := 0, int64(0)
	r.Eventually(func() bool {
		r.Pass(look)
		stuck++
		if out := r.Transport.Stats().BytesOut; out != moved {
			stuck, moved = 0, out
		}
		return r.Transport.Stats().SlowClosed == 1
	})
	require.Less(t, stuck, int(lim.WriteTimeout/look), "no sooner than without pressure")
	r.Eventually(func() bool { return h.Ledger.Sum.Load() == 0 })
}

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
)

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func testSlowReaders(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	const readers = 50
	before := heap()
	for i := range readers {
		c := r.dial()
		r.session(i)
		c.send(strings.Repeat("big 1000000\n", 40))
	}
	other := r.dial()
	stuck := func() bool { // each has a reply that the kernel does not take
		for _, s := range r.h.all()[:readers] {
			if _, output := s.peer.Held(); output == 0 {
				return false
			}
		}
		return true
	}
	held, pending := int64(0), int64(0)
	r.eventually(func() bool {
		other.send("echo 1")
		other.expect("1") // one bad client never holds up another
		r.pass(0)
		out := r.tr.Stats().BytesOut
		held, pending = heap()-before, r.tr.Stats().Pending
		r.pass(0)
		// While something moves, garbage is counted too.
		return stuck() && r.tr.Stats().BytesOut == out
	})
	t.Logf("%.1f MiB of heap, %.1f MiB pending", float64(held)/(1<<20), float64(pending)/(1<<20))
	bound := int64(50 << 20)
	if _, ok := r.tr.(*overTLS); ok {
		bound += readers * 128 << 10 // buffers of crypto/tls, and records
	}
	require.LessOrEqual(t, held, bound)
	require.LessOrEqual(t, pending, bound)

	r.pass(r.lim.WriteTimeout / 2)
	require.Zero(t, r.tr.Stats().SlowClosed)
	r.eventually(func() bool {
		r.pass(r.lim.WriteTimeout)
		return r.tr.Stats().SlowClosed == readers && r.tr.Stats().Connections == 1
	})
	other.send("echo 1")
	other.expect("1")
}

// testSteadyReader takes 128 KiB each time that the transport looks, for three times the limit,
// and then the rest.
func testSteadyReader(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	c := r.dial()
	require.NoError(t, c.tcp().SetReadBuffer(256<<10))
	const size, looks = 12 << 20, 3 * 8
	c.send("big " + strconv.Itoa(size))
	r.eventually(func() bool { return r.tr.Stats().Pending > 0 })
	part := make([]byte, 128<<10)
	for range looks {
		_, err := io.ReadFull(c.r, part)
		require.NoError(t, err)
		r.pass(r.lim.WriteTimeout / 8)
	}
	_, err := io.CopyN(io.Discard, c.r, size+1-looks*int64(len(part)))
	require.NoError(t, err)
	require.Zero(t, r.tr.Stats().SlowClosed)
}

func testFlood(t *testing.T, f factory) {
	lim := patientLimits()
	lim.WriteTimeout = patience
	r := start(t, f, newLineHandler(), lim)
	c := r.dial()
	go func() {
		flood := []byte(strings.Repeat("big 1000\n", 10_000))
		for {
			if _, err := c.Write(flood); err != nil {
				return // the test is over
			}
		}
	}()
	most := int64(0)
	r.eventually(func() bool {
		s := r.tr.Stats()
		most = max(most, s.Pending)
		return s.Pending > 0 && s.BytesOut > 1<<20
	})
	// One turn may begin just below the backlog.
	for range 200 {
		most = max(most, r.tr.Stats().Pending)
		runtime.Gosched()
	}
	require.LessOrEqual(t, most, int64(lim.Backlog+turnBytes+1001))
	r.session(0).peer.Abort()
}

func testFairness(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	var group sync.WaitGroup
	var floods []*client
	for range 8 {
		c := r.dial()
		floods = append(floods, c)
		group.Go(func() {
			flood := []byte(strings.Repeat("echo 0123456789\n", 10_000))
			for {
				if _, err := c.Write(flood); err != nil {
					return // the test is over
				}
			}
		})
		group.Go(func() { io.Copy(io.Discard, c.r) })
	}
	c := r.dial()
	for range 40 {
		c.send("echo 1")
		c.expect("1")
	}
	for _, f := range floods {
		f.Close()
	}
	group.Wait()
}

func testSetLimits(t *testing.T, f factory) {
	lim := patientLimits()
	lim.WriteTimeout = patience
	r := start(t, f, newLineHandler(), lim)
	c := r.dial()
	c.send("big 50000000")
	r.eventually(func() bool { return r.tr.Stats().Pending > 0 })
	r.pass(r.lim.WriteTimeout / 2)
	require.Zero(t, r.tr.Stats().SlowClosed)
	lim.WriteTimeout /= 1000
	r.tr.SetLimits(lim)
	r.lim = lim
	r.eventually(func() bool { r.pass(lim.WriteTimeout); return r.tr.Stats().SlowClosed == 1 })
	r.await(r.session(0).closed.Load)
}

// testPressed: while the handler is pressed, a client that takes nothing of a reply that is
// counted is cut long before its time for writing is over. One that is sent a value of the store
// is not.
func testPressed(t *testing.T, f factory) {
	lim := patientLimits()
	lim.WriteTimeout = time.Minute
	h := newLineHandler()
	const large, look = 32 << 20, time.Second // more than a socket takes; how often the transport looks
	h.onRefer = func(turn *transport.Turn, n int) {
		if n != large {
			h.refer(turn, large)
			return
		}
		h.ledger.Count(large)
		r := shared.Own(make([]byte, large), &h.ledger, large)
		r.At = len(turn.Out)
		turn.Refs = append(turn.Refs, r)
		turn.Out = append(turn.Out, '\n')
	}
	r := start(t, f, h, lim)
	h.pressed.Store(true)
	value := r.dial()
	value.send("refer 1")
	r.eventually(func() bool { return r.tr.Stats().BytesOut > 1<<16 })
	r.pass(lim.WriteTimeout * 3 / 4)
	require.Zero(t, r.tr.Stats().SlowClosed, "the value stays")
	require.Positive(t, h.ledger.sum.Load())
	require.NoError(t, value.Close())
	r.await(r.session(0).closed.Load)
	r.eventually(func() bool { return h.ledger.sum.Load() == 0 })

	own := r.dial()
	own.send("refer " + strconv.Itoa(large))
	stuck, moved := 0, int64(0)
	r.eventually(func() bool {
		r.pass(look)
		stuck++
		if out := r.tr.Stats().BytesOut; out != moved {
			stuck, moved = 0, out
		}
		return r.tr.Stats().SlowClosed == 1
	})
	require.Less(t, stuck, int(lim.WriteTimeout/look), "no sooner than without pressure")
	r.eventually(func() bool { return h.ledger.sum.Load() == 0 })
}

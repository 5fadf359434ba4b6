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
	lim := transport.DefaultLimits()
	lim.WriteTimeout = time.Second
	r := start(t, f, newLineHandler(), lim)
	const readers = 50
	before := heap()
	for range readers {
		c := r.dial()
		c.send(strings.Repeat("big 1000000\n", 40))
	}
	other := r.dial()
	peak, pending, moved := int64(0), int64(0), int64(0)
	r.eventually(func() bool {
		other.send("echo 1")
		other.expect("1") // one bad client never holds up another
		// A loop tells what it has sent once a round, and what it throws away meanwhile
		// may be counted; what is held is there at every look.
		if held := min(heap(), heap(), heap()) - before; moved == r.tr.Stats().BytesOut {
			peak = max(peak, held) // nobody has moved, so there was no garbage to count
		}
		moved = r.tr.Stats().BytesOut + int64(len("1\n"))
		pending = max(pending, r.tr.Stats().Pending)
		return r.tr.Stats().SlowClosed == readers
	})
	t.Logf("%.1f MiB of heap, %.1f MiB pending", float64(peak)/(1<<20), float64(pending)/(1<<20))
	bound := int64(50 << 20)
	if _, ok := r.tr.(*overTLS); ok {
		bound += readers * 128 << 10 // buffers of crypto/tls, and records
	}
	require.LessOrEqual(t, peak, bound)
	require.LessOrEqual(t, pending, bound)
	r.eventually(func() bool { return r.tr.Stats().Connections == 1 })
}

func testSteadyReader(t *testing.T, f factory) {
	lim := transport.DefaultLimits()
	lim.WriteTimeout = 1500 * time.Millisecond
	r := start(t, f, newLineHandler(), lim)
	const attempts = 5
	for n := 1; ; n++ {
		cut := r.tr.Stats().SlowClosed
		pause, err := readSteadily(t, r.dial())
		if pause > lim.WriteTimeout/3 && n < attempts {
			continue // a busy machine has stopped the reader, which was not steady then
		}
		require.NoError(t, err)
		require.Equal(t, cut, r.tr.Stats().SlowClosed)
		return
	}
}

// readSteadily takes some 1.3 MB/s for several times the limit, then the rest at full speed. It
// returns how long its longest pause was, and what went wrong.
func readSteadily(t *testing.T, c *client) (pause time.Duration, err error) {
	defer c.Close()
	require.NoError(t, c.tcp().SetReadBuffer(256<<10))
	const size = 12 << 20
	c.send("big 12582912")
	pace := time.NewTicker(25 * time.Millisecond)
	defer pace.Stop()
	part := make([]byte, 32<<10)
	last := time.Now()
	for range 180 {
		<-pace.C
		_, err := io.ReadFull(c.r, part)
		pause = max(pause, time.Since(last))
		last = time.Now()
		if err != nil {
			return pause, err
		}
	}
	_, err = io.CopyN(io.Discard, c.r, size+1-180*int64(len(part)))
	return max(pause, time.Since(last)), err
}

func testFlood(t *testing.T, f factory) {
	lim := transport.DefaultLimits()
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
	r := start(t, f, newLineHandler(), transport.DefaultLimits())
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
	for range 300 {
		c.send("echo 1")
		c.expect("1")
	}
	for _, f := range floods {
		f.Close()
	}
	group.Wait()
}

func testSetLimits(t *testing.T, f factory) {
	lim := transport.DefaultLimits()
	lim.WriteTimeout = patience
	r := start(t, f, newLineHandler(), lim)
	c := r.dial()
	c.send("big 50000000")
	r.eventually(func() bool { return r.tr.Stats().Pending > 0 })
	lim.WriteTimeout = 100 * time.Millisecond
	r.tr.SetLimits(lim)
	r.eventually(func() bool { return r.tr.Stats().SlowClosed == 1 })
	r.eventually(r.session(0).closed.Load)
}

// testPressed: while the handler is pressed, who takes nothing of a reply that is counted
// is cut long before its time for writing is over; who is sent a value of the store is not.
func testPressed(t *testing.T, f factory) {
	lim := transport.DefaultLimits()
	lim.WriteTimeout = 12 * time.Second
	h := newLineHandler()
	const large = 32 << 20 // more than a socket takes
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
	value, own := r.dial(), r.dial()
	begun := time.Now() // before any time for writing
	value.send("refer 1")
	own.send("refer " + strconv.Itoa(large))
	r.eventually(func() bool { return h.ledger.sum.Load() > 2*large-large/2 })
	h.pressed.Store(true)
	r.eventually(func() bool { return r.tr.Stats().SlowClosed > 0 })
	r.eventually(func() bool { return h.ledger.sum.Load() < 2*large-large/2 })
	closed, left := r.tr.Stats().SlowClosed, h.ledger.sum.Load()
	if time.Since(begun) < lim.WriteTimeout { // else the machine stood still
		require.EqualValues(t, 1, closed)
		require.Greater(t, left, int64(large/2), "the value is still there")
	}
}

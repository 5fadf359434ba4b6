package transport_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// ledger adds up what it is told.
type ledger struct{ sum atomic.Int64 }

// Count implements shared.Ledger.
func (l *ledger) Count(bytes int64) { l.sum.Add(bytes) }

// refer appends a line of n bytes to a reply that lie elsewhere: in a value of its own,
// which is gone at once, so that the ledger of h counts it until it has been sent.
func (h *lineHandler) refer(t *transport.Turn, n int) {
	value := shared.New(bytes.Repeat([]byte("r"), n), 0)
	shared.Hold(value, &h.ledger)
	shared.Drop(value, &h.ledger)
	r := shared.Held(value, &h.ledger)
	r.At = len(t.Out)
	t.Refs = append(t.Refs, r)
	t.Out = append(t.Out, '\n')
}

// testPieces has any mix of bytes and references arrive as it was said, and every
// reference released.
func testPieces(t *testing.T, f factory) {
	h := newLineHandler()
	h.durable.Store(1)
	r := start(t, f, h, patientLimits())
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := r.dial()
	buffer := 16 << 10
	if _, ok := r.tr.(*overTLS); ok {
		buffer = 64 << 10 // with less than a record the kernel waits for its timers
	}
	require.NoError(t, c.tcp().SetReadBuffer(buffer))
	for range 20 {
		var lines, want []string
		for range 1 + rng.IntN(200) {
			n := rng.IntN(3 << rng.IntN(16))
			switch rng.IntN(5) {
			case 0:
				lines, want = append(lines, "big "+strconv.Itoa(n)), append(want, strings.Repeat("x", n))
			case 1:
				lines, want = append(lines, "echo "+strconv.Itoa(n)), append(want, strconv.Itoa(n))
			case 2:
				lines, want = append(lines, "sync 1"), append(want, "synced 1")
			default:
				lines, want = append(lines, "refer "+strconv.Itoa(n)), append(want, strings.Repeat("r", n))
			}
		}
		go c.send(lines...)
		got := make([]byte, len(strings.Join(want, "\n"))+1)
		_, err := io.ReadFull(c.r, got)
		require.NoError(t, err)
		require.Equal(t, strings.Join(want, "\n")+"\n", string(got), "the replies are what was said")
	}
	r.eventually(func() bool { return h.ledger.sum.Load() == 0 && r.tr.Stats().Pending == 0 })
}

// testPiecesReleased: a client that goes, or is cut off, gives up what it has not read.
func testPiecesReleased(t *testing.T, f factory) {
	h := newLineHandler()
	h.lost = 9
	h.regret = func([]byte) []byte { return []byte("lost\n") }
	r := start(t, f, h, patientLimits())
	const large = 32 << 20 // more than a socket takes
	for i, end := range []func(c *client, s *lineSession){
		func(c *client, _ *lineSession) { c.Close() },
		func(_ *client, s *lineSession) { s.peer.Abort() },
	} {
		c := r.dial()
		s := r.session(i)
		c.send("refer "+strconv.Itoa(large), "refer 7")
		r.eventually(func() bool { return h.ledger.sum.Load() > large })
		r.eventually(func() bool { return r.tr.Stats().BytesOut > 0 })
		most := int64(1000)
		if _, ok := r.tr.(*overTLS); ok {
			most += 128 << 10 // records are copies
		}
		require.Less(t, r.tr.Stats().Pending, most, "what others count is not the connection's")
		end(c, s)
		r.eventually(func() bool { return h.ledger.sum.Load() == 0 })
	}
	c, gone := r.dial(), r.dial()
	c.send("sync 9", "refer 100000")
	gone.send("sync 10", "refer 100000")
	r.await(func() bool { return h.syncing() >= 2 })
	gone.Close() // which is noticed once there is something to tell it
	h.synced(10)
	c.expect("lost")
	r.eventually(func() bool { return h.ledger.sum.Load() == 0 })
}

// testPiecesFair: while a client takes very much, others are answered between. The other sends its
// command while the reply is made, and how much of that has left when the command is fed is
// counted. A machine may be late with the command, but not every time.
func testPiecesFair(t *testing.T, f factory) {
	h := newLineHandler()
	const size, most, attempts = 64 << 20, 32 << 20, 20
	value := shared.New(bytes.Repeat([]byte("r"), 1<<20), 0)
	// The loops of a transport learn of these by no lock.
	var tr atomic.Pointer[transport.Transport]
	var others atomic.Pointer[client]
	var fed atomic.Pointer[lineSession]
	var begun, sent atomic.Int64
	h.onFeed = func(s *lineSession) {
		if s == fed.Load() {
			sent.Store((*tr.Load()).Stats().BytesOut - begun.Load())
		}
	}
	h.onRefer = func(t *transport.Turn, n int) {
		for range n >> 20 {
			shared.Hold(value, &h.ledger)
			ref := shared.Held(value, &h.ledger)
			ref.At = len(t.Out)
			t.Refs = append(t.Refs, ref)
		}
		t.Out = append(t.Out, '\n')
		begun.Store((*tr.Load()).Stats().BytesOut)
		others.Load().send("echo 1")
	}
	r := start(t, f, h, patientLimits())
	c := r.dial()
	r.session(0)
	other := r.dial()
	session := r.session(1)
	other.send("echo 1") // with TLS it has been through its handshake then
	other.expect("1")
	tr.Store(&r.tr)
	others.Store(other)
	fed.Store(session)
	least := int64(size)
	for n := 0; n < attempts && least >= most; n++ {
		c.send("refer " + strconv.Itoa(size))
		_, err := io.CopyN(io.Discard, c.r, size+1)
		require.NoError(t, err)
		other.expect("1")
		least = min(least, sent.Load())
	}
	require.Less(t, least, int64(most), "nobody was answered before most of it had been sent")
	r.eventually(func() bool { return !shared.Busy(value) }) // the client may have read all before its last write returns
}

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
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// testPieces: any mix of bytes and references arrives unchanged, and every reference is released.
func testPieces(t *testing.T, f transporttest.Factory) {
	h := transporttest.NewLineHandler()
	h.DurableUpTo.Store(1)
	r := transporttest.Start(t, f, h, transporttest.PatientLimits())
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := r.Dial()
	buffer := 16 << 10
	if _, ok := r.Transport.(*transporttest.OverTLS); ok {
		buffer = 64 << 10 // with less than a record the kernel waits for its timers
	}
	require.NoError(t, c.TCP().SetReadBuffer(buffer))
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
		go c.Send(lines...)
		got := make([]byte, len(strings.Join(want, "\n"))+1)
		_, err := io.ReadFull(c.Reader, got)
		require.NoError(t, err)
		require.Equal(t, strings.Join(want, "\n")+"\n", string(got), "the replies are what was said")
	}
	r.Eventually(func() bool { return h.Ledger.Sum.Load() == 0 && r.Transport.Stats().Pending == 0 })
}

// testPiecesReleased: when a client closes or is closed, the references of its unread replies are
// released.
func testPiecesReleased(t *testing.T, f transporttest.Factory) {
	h := transporttest.NewLineHandler()
	h.Lost = 9
	h.Regret = func([]byte) []byte { return []byte("lost\n") }
	r := transporttest.Start(t, f, h, transporttest.PatientLimits())
	const large = 32 << 20 // more than a socket takes
	for i, end := range []func(c *transporttest.Client, s *transporttest.LineSession){
		func(c *transporttest.Client, _ *transporttest.LineSession) { c.Close() },
		func(_ *transporttest.Client, s *transporttest.LineSession) { s.Peer.Abort() },
	} {
		c := r.Dial()
		s := r.Session(i)
		c.Send("refer "+strconv.Itoa(large), "refer 7")
		r.Eventually(func() bool { return h.Ledger.Sum.Load() > large })
		r.Eventually(func() bool { return r.Transport.Stats().BytesOut > 0 })
		most := int64(1000)
		if _, ok := r.Transport.(*transporttest.OverTLS); ok {
			most += 128 << 10 // records are copies
		}
		require.Less(t, r.Transport.Stats().Pending, most, "what others count is not the connection's")
		end(c, s)
		r.Eventually(func() bool { return h.Ledger.Sum.Load() == 0 })
	}
	c, gone := r.Dial(), r.Dial()
	c.Send("sync 9", "refer 100000")
	gone.Send("sync 10", "refer 100000")
	r.Await(func() bool { return h.Syncing() >= 2 })
	gone.Close() // which the server notices when it sends something
	h.Synced(10)
	c.Expect("lost")
	r.Eventually(func() bool { return h.Ledger.Sum.Load() == 0 })
}

// testPiecesFair: while a client receives a very long reply, other clients are served in between.
// The other client sends its command while the reply is made, and the test measures how much of the
// reply has been sent when the command is fed. A busy machine may delay the command, but not every
// time.
func testPiecesFair(t *testing.T, f transporttest.Factory) {
	h := transporttest.NewLineHandler()
	const size, most, attempts = 64 << 20, 32 << 20, 20
	value := shared.New(bytes.Repeat([]byte("r"), 1<<20), 0)
	// The transport's loops get these without a lock.
	var tr atomic.Pointer[transport.Transport]
	var others atomic.Pointer[transporttest.Client]
	var fed atomic.Pointer[transporttest.LineSession]
	var begun, sent atomic.Int64
	h.OnFeed = func(s *transporttest.LineSession) {
		if s == fed.Load() {
			sent.Store((*tr.Load()).Stats().BytesOut - begun.Load())
		}
	}
	h.OnRefer = func(t *transport.Turn, n int) {
		for range n >> 20 {
			shared.Hold(value, &h.Ledger)
			ref := shared.Held(value, &h.Ledger)
			ref.At = len(t.Out)
			t.Refs = append(t.Refs, ref)
		}
		t.Out = append(t.Out, '\n')
		begun.Store((*tr.Load()).Stats().BytesOut)
		others.Load().Send("echo 1")
	}
	r := transporttest.Start(t, f, h, transporttest.PatientLimits())
	c := r.Dial()
	r.Session(0)
	other := r.Dial()
	session := r.Session(1)
	other.Send("echo 1") // with TLS, the handshake is over after that
	other.Expect("1")
	tr.Store(&r.Transport)
	others.Store(other)
	fed.Store(session)
	least := int64(size)
	for n := 0; n < attempts && least >= most; n++ {
		c.Send("refer " + strconv.Itoa(size))
		_, err := io.CopyN(io.Discard, c.Reader, size+1)
		require.NoError(t, err)
		other.Expect("1")
		least = min(least, sent.Load())
	}
	require.Less(t, least, int64(most), "nobody was answered before most of it had been sent")
	r.Eventually(func() bool { return !shared.Busy(value) }) // the client may have read everything before the last write returns
}

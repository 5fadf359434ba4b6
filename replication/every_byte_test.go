package replication_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/replication"
)

// cutBytes is the largest number of bytes after which a test cuts a link.
const cutBytes = 4096

// drill reports whether tests run at full size, as in make chaos.
var drill = os.Getenv("CHAOS_FULL") != ""

// afterCut returns where to cut the next link, when the last was cut after n bytes: after one
// byte more or, if the test is sparse and not at full size, after several more.
func afterCut(n int64, sparse bool) int64 {
	if drill || !sparse {
		return n + 1
	}
	return min(n+13, cutBytes)
}

// eachByte ends the connections of a node after 0 bytes, after 1, after 2, and so on.
type eachByte struct {
	next atomic.Int64 // after how many bytes the next connection ends
	// before is called before each connection. A test may set it while connections exist.
	before atomic.Pointer[func()]
}

func (e *eachByte) callBefore(f func()) { e.before.Store(&f) }

// dial wraps the Dial function of a node.
func (e *eachByte) dial(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, to string) (net.Conn, error) {
		(*e.before.Load())()
		conn, err := dial(ctx, network, to)
		n := e.next.Load()
		if err != nil || n >= cutBytes {
			return conn, err
		}
		e.next.Store(afterCut(n, n > 512))
		return &short{conn, n}, nil
	}
}

// short is a connection that ends after so many bytes were read.
type short struct {
	net.Conn
	left int64
}

var errShort = errors.New("the connection is reset")

func (c *short) Read(p []byte) (int, error) {
	if c.left == 0 {
		_ = c.Close()
		return 0, errShort
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// startEachByte starts a node whose connections end that way, and which reconnects at once.
func (w *web) startEachByte(address string, e *eachByte) *member {
	e.next.Store(cutBytes)
	e.callBefore(func() {})
	return w.startWith(address, time.Minute, func(o *replication.Options) {
		o.Dial = e.dial(o.Dial)
		o.After = func(d time.Duration) <-chan time.Time {
			if d == time.Second { // the delay before it reconnects or acknowledges
				return time.After(100 * time.Microsecond)
			}
			return after(d)
		}
	})
}

// TestFullSyncIsCutAtEachByte ends the link of a replica after each number of bytes of the
// handshake and of a large full resynchronization, whose first block is larger than that. The
// replica keeps the state that it had. A replica that had already lost its state serves none.
func TestFullSyncIsCutAtEachByte(t *testing.T) {
	for _, half := range []bool{false, true} {
		t.Run("half a state before "+strconv.FormatBool(half), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWeb(t)
				var e eachByte
				a, b := w.start("a:1", 0), w.startEachByte("b:2", &e)
				fill, rng := a.client(), rand.New(rand.NewPCG(1, 1))
				for range 2000 {
					require.True(t, fill.do(func(v *keyspace.Handle) { change(t, rng, v) }))
				}
				require.True(t, b.client().put("own", "x"))
				if half {
					w.says("evil:1", "+FULLRESYNC "+someID+" 1000 cell1\r\n", (&speech{t: t, offset: begin}).block("half").out)
					b.node.ReplicaOf("evil", "1")
					eventually(t, "not whole", func() bool { return !b.node.IsWhole() && b.info()["cell_repl_error"] != "" })
				}
				e.next.Store(0)
				e.callBefore(func() { requireOwnOrNone(t, b, !half) })
				b.follow(a)
				eventually(t, "all cuts", func() bool { return e.next.Load() == cutBytes })
				awaitEqual(t, a, b)
				require.False(t, b.host.loading.Load())
				require.Greater(t, a.source.Counts().SyncFull, int64(200), "they were cut")
			})
		})
	}
}

// requireOwnOrNone checks that a node has its own state or reports that it has none, and that
// nothing was applied.
func requireOwnOrNone(t *testing.T, b *member, whole bool) {
	t.Helper()
	require.Equal(t, whole, b.node.IsWhole())
	require.Equal(t, !whole, b.host.loading.Load(), "half a state is served")
	if whole {
		require.Contains(t, b.state(), "0/own")
		require.Len(t, b.state(), 1)
		return
	}
	require.Equal(t, "0", b.info()["slave_priority"], "a sentinel may promote it")
}

// TestSmallFullSyncIsCutAtEachByte does the same to replicas of a few keys. It cuts in each part
// of the synchronization: the handshake, blocks, the end and the clock.
func TestSmallFullSyncIsCutAtEachByte(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a := w.start("a:1", 0)
		fill, rng := a.client(), rand.New(rand.NewPCG(1, 3))
		for range 20 {
			require.True(t, fill.do(func(v *keyspace.Handle) { change(t, rng, v) }))
		}
		kept, lost := 0, 0
		for n, done := int64(0), false; !done; n = afterCut(n, true) {
			var e eachByte
			b := w.startEachByte("b:2", &e)
			require.True(t, b.client().put("own", "x"))
			dials := 0
			e.callBefore(func() { // the link of the second node was cut
				if dials++; dials != 2 {
					return
				}
				e.next.Store(cutBytes)
				switch whole := b.node.IsWhole(); {
				case b.source.History().ID == a.source.History().ID:
					require.True(t, whole)
					done = true
					return
				case whole:
					kept++
				default:
					lost++
				}
				requireOwnOrNone(t, b, b.node.IsWhole())
			})
			e.next.Store(n)
			b.follow(a)
			eventually(t, "the cut", func() bool { return e.next.Load() == cutBytes })
			awaitEqual(t, a, b)
			require.False(t, b.host.loading.Load())
			b.stop()
		}
		require.Greater(t, kept, 10, "the answers were cut")
		require.Greater(t, lost, 5, "what came behind the first block was cut")
	})
}

// TestStreamIsCutAtEachByte ends the link of a replica after each number of bytes of a stream.
// The replica continues behind what it has, without a full resynchronization, and loses nothing.
func TestStreamIsCutAtEachByte(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		var e eachByte
		a, b := w.start("a:1", 0), w.startEachByte("b:2", &e)
		b.follow(a)
		b.awaitUp()
		c, rng := a.client(), rand.New(rand.NewPCG(1, 2))
		e.callBefore(func() { // write as many bytes as the next link may receive
			require.True(t, b.node.IsWhole())
			require.False(t, b.host.loading.Load())
			for a.source.Offset() < b.source.Offset()+cutBytes {
				require.True(t, c.do(func(v *keyspace.Handle) { change(t, rng, v) }))
			}
		})
		e.next.Store(0)
		w.cut(b.address)
		eventually(t, "all cuts", func() bool { return e.next.Load() == cutBytes })
		awaitEqual(t, a, b)
		require.Equal(t, int64(1), b.keeper.suspended.Load(), "the backlog had everything")
		require.Equal(t, int64(1), a.source.Counts().SyncFull)
		require.Greater(t, a.source.Counts().SyncPartialOK, int64(200))
	})
}

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
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/replication"
)

// cutBytes is how many of the first bytes of a link are the last that come over one.
const cutBytes = 4096

// drill reports whether tests run at full size, as for make chaos.
var drill = os.Getenv("CHAOS_FULL") != ""

// afterCut is where a link is cut after one that was cut at n: at the next byte, or at some of them
// where the tests are not at full size.
func afterCut(n int64, sparse bool) int64 {
	if drill || !sparse {
		return n + 1
	}
	return min(n+13, cutBytes)
}

// eachByte has the connections of a node end after 0 bytes, after 1, after 2, and so on.
type eachByte struct {
	next atomic.Int64 // after how many bytes the next one ends
	// before is called between two connections. A test may set it while there are some.
	before atomic.Pointer[func()]
}

func (e *eachByte) callBefore(f func()) { e.before.Store(&f) }

// dial is the Dial of a node, in whose place it opens connections.
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

// short is a connection over which so many bytes come.
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

// startEachByte starts a node that loses its connections so, and connects again at once.
func (w *web) startEachByte(address string, e *eachByte) *member {
	e.next.Store(cutBytes)
	e.callBefore(func() {})
	return w.startWith(address, time.Minute, func(o *replication.Options) {
		o.Dial = e.dial(o.Dial)
		o.After = func(d time.Duration) <-chan time.Time {
			if d == time.Second { // until it connects again, or acknowledges
				return time.After(100 * time.Microsecond)
			}
			return after(d)
		}
	})
}

// TestFullSyncIsCutAtEachByte ends the link of a replica after each number of bytes of the answers
// and of a large full sync, whose first block does not fit into that. The replica keeps the state
// that it had. One that had lost it already serves none.
func TestFullSyncIsCutAtEachByte(t *testing.T) {
	for _, half := range []bool{false, true} {
		t.Run("half a state before "+strconv.FormatBool(half), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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

// requireOwnOrNone wants a node to have its own state, or to say that it has none. Nothing is
// applied meanwhile.
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

// TestSmallFullSyncIsCutAtEachByte does so to replicas of a few keys, and cuts each part of the
// sync: the answers, blocks, the end and the clock.
func TestSmallFullSyncIsCutAtEachByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
			e.callBefore(func() { // the link of the second has been cut
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

// TestStreamIsCutAtEachByte ends the link of a replica after each number of bytes of a stream that
// goes on. The replica goes on behind what it has, with no full sync, and loses nothing.
func TestStreamIsCutAtEachByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t)
		var e eachByte
		a, b := w.start("a:1", 0), w.startEachByte("b:2", &e)
		b.follow(a)
		b.awaitUp()
		c, rng := a.client(), rand.New(rand.NewPCG(1, 2))
		e.callBefore(func() { // there is as much to come as is cut
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

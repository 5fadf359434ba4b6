package replication_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/replication"
)

// slowKeeper is a keeper whose file rewrite waits until the test allows it or it is interrupted.
type slowKeeper struct {
	*keeper
	let         chan struct{}
	rewriting   atomic.Bool
	interrupted atomic.Int64
	overlaps    atomic.Bool // Suspend was called during a rewrite
	late        atomic.Bool // the log continued when commands did, or later
}

func (k *slowKeeper) Suspend() {
	if k.rewriting.Load() {
		k.overlaps.Store(true)
	}
	k.keeper.Suspend()
}

func (k *slowKeeper) Rewrite() (finish func(context.Context) error) {
	k.rewriting.Store(true)
	if !k.p.host.loading.Load() {
		k.late.Store(true)
	}
	return func(ctx context.Context) error {
		defer k.rewriting.Store(false)
		select {
		case <-k.let:
			return k.keeper.Rewrite()(ctx)
		case <-ctx.Done():
			k.interrupted.Add(1)
			return context.Cause(ctx)
		}
	}
}

// startSlow starts a node with such a keeper.
func (w *web) startSlow(address string, with func(o *replication.Options)) (*member, *slowKeeper) {
	slow := &slowKeeper{let: make(chan struct{})}
	p := w.startWith(address, 0, func(o *replication.Options) {
		slow.keeper = o.Files.(*keeper)
		o.Files = slow
		with(o)
	})
	return p, slow
}

func asIs(*replication.Options) {}

// TestFullSyncInterruptsTheAdoptionBefore: if the files have not yet been rewritten with the last
// state, a new full resynchronization interrupts that, and the files keep the state before it.
// The two must not overlap: the end of the first rewrite would write an incomplete state.
func TestFullSyncInterruptsTheAdoptionBefore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		c, slow := w.startSlow("c:3", asIs)
		b.keeper.SetDataSet(a.keeper.DataSet()) // otherwise c would refuse its data set
		require.True(t, a.client().put("of a", "1"))
		require.True(t, b.client().put("of b", "1"))
		c.follow(a)
		awaitEqual(t, a, c)
		require.True(t, slow.rewriting.Load(), "nobody waits for the files")
		c.follow(b)
		awaitEqual(t, b, c)
		require.Equal(t, int64(1), slow.interrupted.Load())
		close(slow.let)
		eventually(t, "the files have it", func() bool { return slow.rewritten.Load() == 1 })
		require.False(t, slow.overlaps.Load())
		require.False(t, slow.late.Load())
		require.Equal(t, int64(2), slow.suspended.Load())
		require.Equal(t, int64(1), slow.interrupted.Load())
	})
}

// TestReplicaStopsWithoutItsFiles: a replica that stops does not wait for the rewrite, because
// the primary has the state.
func TestReplicaStopsWithoutItsFiles(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a := w.start("a:1", 0)
		c, slow := w.startSlow("c:3", asIs)
		require.True(t, a.client().put("k", "1"))
		c.follow(a)
		awaitEqual(t, a, c)
		c.stop()
		require.Equal(t, int64(1), slow.interrupted.Load())
		require.Zero(t, slow.rewritten.Load())
	})
}

// TestPromotedNodeStopsWithItsFiles: a node that is promoted during the rewrite waits for it when
// it stops, because it has acknowledged changes to clients.
func TestPromotedNodeStopsWithItsFiles(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a := w.start("a:1", 0)
		c, slow := w.startSlow("c:3", asIs)
		require.True(t, a.client().put("k", "1"))
		c.follow(a)
		awaitEqual(t, a, c)
		c.node.Promote(nil)
		c.awaitPrimary()
		require.True(t, slow.rewriting.Load())
		require.True(t, c.client().put("l", "1"))
		stopped := make(chan struct{})
		go func() {
			c.stop()
			close(stopped)
		}()
		close(slow.let)
		<-stopped
		require.Zero(t, slow.interrupted.Load())
		require.Equal(t, int64(1), slow.rewritten.Load())
	})
}

// TestPromotionInAFullSync: the empty state is written to the files before changes are accepted.
func TestPromotionInAFullSync(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		c, slow := w.startSlow("c:3", asIs)
		s := (&speech{t: t, offset: begin}).block("half")
		w.says("evil:1", "+FULLRESYNC "+someID+" 1000 cell1\r\n", s.out)
		c.node.ReplicaOf("evil", "1")
		eventually(t, "not whole", func() bool { return !c.node.IsWhole() })
		c.node.Promote(nil)
		c.awaitPrimary()
		require.True(t, slow.rewriting.Load())
		require.False(t, slow.late.Load())
		require.Empty(t, c.state())
		require.True(t, c.client().put("l", "1"))
		close(slow.let)
		eventually(t, "the files have it", func() bool { return slow.rewritten.Load() == 1 })
	})
}

// TestLinkWithARedisDoesNotWaitForFiles: the state of a Redis is served while the files are
// rewritten.
func TestLinkWithARedisDoesNotWaitForFiles(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		var b *member
		f := &redis{node: func() *replication.Node { return b.node }, given: make(chan string), current: someID}
		f.state = func() int { return len(b.state()) }
		b, slow := w.startSlow("b:2", func(o *replication.Options) { o.Redis = f })
		w.playOnce("redis:1", func(conn net.Conn, r *bufio.Reader) {
			for {
				words, err := readCommand(r)
				if err != nil {
					return
				}
				reply := "+OK\r\n"
				if words[0] == "PSYNC" {
					reply = "+FULLRESYNC " + someID + " 7\r\n$EOF\n"
				}
				_, _ = io.WriteString(conn, reply)
			}
		})
		b.node.ReplicaOf("redis", "1")
		<-f.given
		f.given <- ""
		b.awaitUp()
		require.Empty(t, b.keeper.DataSet(), "a Redis has none")
		require.True(t, slow.rewriting.Load())
		require.False(t, slow.late.Load())
		require.False(t, b.host.loading.Load())
		close(slow.let)
		eventually(t, "the files have it", func() bool { return slow.rewritten.Load() == 1 })
	})
}

// TestNoLagNeedsNoReplicas: as in Redis, min-replicas-max-lag 0 disables min-replicas-to-write.
func TestNoLagNeedsNoReplicas(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a := w.start("a:1", 0)
		a.change(func(s *replication.Settings) { s.MinReplicas, s.MinReplicasMaxLag = 1, time.Second })
		require.True(t, a.lacksReplicas(), "at once")
		a.change(func(s *replication.Settings) { s.MinReplicasMaxLag = 0 })
		require.False(t, a.lacksReplicas(), "at once")
	})
}

// faultyKeeper has a log that refuses effects, as when the disk is full.
type faultyKeeper struct {
	*keeper
	faulty atomic.Bool
}

func (k *faultyKeeper) Log() (replication.Log, error) {
	log, err := k.keeper.Log()
	return &faultyLog{log, k}, err
}

type faultyLog struct {
	replication.Log
	k *faultyKeeper
}

func (l *faultyLog) Refuses() bool { return l.k.faulty.Load() }

// TestReplicaKeepsItsStateWhileThePrimaryCannotWrite: while the log cannot be written, no full
// resynchronization begins, because the next attempt to repair the log would end it.
func TestReplicaKeepsItsStateWhileThePrimaryCannotWrite(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		k := &faultyKeeper{}
		a := w.startWith("a:1", 0, func(o *replication.Options) {
			k.keeper = o.Files.(*keeper)
			o.Files = k
		})
		b, c := w.start("b:2", 0), w.start("c:3", 0)
		require.True(t, a.client().put("k", "1"))
		b.follow(a)
		awaitEqual(t, a, b)
		k.faulty.Store(true)
		w.cut(b.address)
		require.True(t, c.client().put("of c", "1"))
		c.follow(a) // otherwise it would receive the state of a
		for _, p := range []*member{b, c} {
			eventually(t, "refused", func() bool { return strings.Contains(p.info()["cell_repl_error"], "the log cannot be written") })
			require.True(t, p.node.IsWhole())
			require.NotEmpty(t, p.state())
		}
		k.faulty.Store(false)
		awaitEqual(t, a, b, c)
		require.Equal(t, int64(1), b.keeper.suspended.Load(), "b went on where it was")
	})
}

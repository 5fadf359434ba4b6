package replication_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/replication"
)

// slowKeeper is one whose files adopt nothing until they are let, or interrupted.
type slowKeeper struct {
	*keeper
	let         chan struct{}
	rewriting   atomic.Bool
	interrupted atomic.Int64
	overlaps    atomic.Bool // Suspend was called while an adoption was under way
	late        atomic.Bool // the log went on when commands did, or later
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

// TestFullSyncInterruptsTheAdoptionBefore: files that have not rewritten the last state keep the one
// before it, and the next full sync begins. The two do not overlap: the end of the first would have
// the files take part in half a state.
func TestFullSyncInterruptsTheAdoptionBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		c, slow := w.startSlow("c:3", asIs)
		b.keeper.SetDataSet(a.keeper.DataSet()) // or c would not follow it
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

// TestReplicaStopsWithoutItsFiles: it does not wait for them, since the primary has the state.
func TestReplicaStopsWithoutItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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

// TestPromotedNodeStopsWithItsFiles: it leads while they adopt the state, and waits for them at its
// end, since it has answered changes.
func TestPromotedNodeStopsWithItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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

// TestPromotionInAFullSync has the files adopt the empty state before changes are accepted.
func TestPromotionInAFullSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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

// TestLinkWithARedisDoesNotWaitForFiles: its state is in force while they adopt it.
func TestLinkWithARedisDoesNotWaitForFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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

// TestNoLagNeedsNoReplicas: as in Redis, min-replicas-max-lag 0 switches min-replicas-to-write off.
func TestNoLagNeedsNoReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a := w.start("a:1", 0)
		a.change(func(s *replication.Settings) { s.MinReplicas, s.MinReplicasMaxLag = 1, time.Second })
		require.True(t, a.lacksReplicas(), "at once")
		a.change(func(s *replication.Settings) { s.MinReplicasMaxLag = 0 })
		require.False(t, a.lacksReplicas(), "at once")
	})
}

// faultyKeeper has a log that refuses effects, as one does whose disk is full.
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

// TestReplicaKeepsItsStateWhileThePrimaryCannotWrite: no full sync begins that the next attempt to
// mend the log would end.
func TestReplicaKeepsItsStateWhileThePrimaryCannotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		c.follow(a) // it would be given the state of a
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

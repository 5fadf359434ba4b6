package replication_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/replication"
)

// startAgain starts a node like was, which has stopped, with the state and the origin from its
// files. ahead is how far its clock is ahead of the others.
func (w *web) startAgain(was *member, ahead time.Duration) *member {
	return w.startWith(was.address, ahead, func(o *replication.Options) {
		k := o.Files.(*keeper)
		k.origin = was.keeper.noted.origin
		k.SetDataSet(was.keeper.DataSet())
		require.NoError(w.t, was.ks.Snapshot(func(db int, key []byte, e entry.Entry) {
			require.NoError(w.t, k.p.ks.Restore(db, key, e))
		}, func() error { return nil }))
	})
}

// TestRestartedReplicaGoesOn: a replica that was stopped in order asks for what it has missed. It
// has the clock of its primary, however far its own clock went meanwhile.
func TestRestartedReplicaGoesOn(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, 0, time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWeb(t)
				a, b := w.start("a:1", 0), w.start("b:2", 0)
				c := a.client()
				require.True(t, c.put("k", "1"))
				b.follow(a)
				awaitEqual(t, a, b)
				b.stop()
				require.Equal(t, b.source.Offset(), b.keeper.noted.origin.Offset)
				require.True(t, c.put("k", "2"))
				require.True(t, c.put("l", "1"))

				again := w.startAgain(b, ahead)
				again.follow(a)
				awaitEqual(t, a, again)
				require.Len(t, again.state(), 2)
				require.Equal(t, int64(1), a.source.Counts().SyncFull)
				require.Equal(t, int64(1), a.source.Counts().SyncPartialOK)
				require.Zero(t, again.keeper.suspended.Load(), "the files go on")
				eventually(t, "the clock is the primary's", func() bool {
					return a.clock.Now().Sub(again.clock.Now()).Abs() < time.Minute
				})
				require.True(t, c.put("m", "1"))
				awaitEqual(t, a, again)
			})
		})
	}
}

// TestRestartedReplicaIsPromoted: a restarted replica that is promoted keeps its history, so
// other replicas continue from there.
func TestRestartedReplicaIsPromoted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b, c := w.start("a:1", 0), w.start("b:2", 0), w.start("c:3", 0)
		require.True(t, a.client().put("k", "1"))
		b.follow(a)
		c.follow(a)
		awaitEqual(t, a, b, c)
		a.node.ReplicaOf("nowhere", "1") // its stream ends
		eventually(t, "a is none any more", func() bool { return a.host.unblocked.Load() == 1 })
		eventually(t, "equal offsets", func() bool {
			return b.source.Offset() == a.source.Offset() && c.source.Offset() == a.source.Offset()
		})
		w.isolate(a.address, true)
		b.stop()
		again := w.startAgain(b, 0)
		again.node.ReplicaOf("a", "1")
		again.awaitField("slave_repl_offset", b.info()["slave_repl_offset"])
		again.node.Promote(nil)
		again.awaitPrimary()
		require.True(t, again.client().put("k", "2"))
		c.follow(again)
		awaitEqual(t, again, c)
		require.Equal(t, int64(1), again.source.Counts().SyncPartialOK)
		require.Zero(t, again.source.Counts().SyncFull)
	})
}

// TestRestartedReplicaRefusesAnEmptyPrimary: a restarted replica knows the primary of its state.
func TestRestartedReplicaRefusesAnEmptyPrimary(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		require.True(t, a.client().put("k", "1"))
		b.follow(a)
		awaitEqual(t, a, b)
		b.stop()
		a.stop()
		w.start("a:1", 0) // replaces the first node, without a key
		again := w.startAgain(b, 0)
		again.node.ReplicaOf("a", "1")
		eventually(t, "refused", func() bool { return again.info()["cell_repl_error"] != "" })
		require.Contains(t, again.info()["cell_repl_error"], "repl-refuse-empty")
		require.Len(t, again.state(), 1)
	})
}

// TestOriginIsLeftByReplicasOnly: other nodes record no origin, because their files do not have
// the state of a primary.
func TestOriginIsLeftByReplicasOnly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b, c := w.start("a:1", 0), w.start("b:2", 0), w.start("c:3", 0)
		require.True(t, a.client().put("k", "1"))
		b.follow(a)
		c.follow(a)
		awaitEqual(t, a, b, c)
		c.node.Promote(nil)
		c.awaitPrimary()
		w.says("evil:1", "+FULLRESYNC "+someID+" 1000 cell1\r\n", (&speech{t: t, offset: begin}).block("half").out)
		b.node.ReplicaOf("evil", "1")
		eventually(t, "half a state", b.host.loading.Load)
		for _, p := range []*member{a, b, c} {
			p.stop()
			require.Nil(t, p.keeper.noted.origin, p.address)
		}
	})
}

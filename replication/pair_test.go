package replication_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/replication"
)

func TestReplicaHasWhatItsPrimaryHas(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, 0, time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWeb(t)
				a, b := w.start("a:1", 0), w.start("b:2", ahead)
				c := a.client()
				for i := range 1000 {
					require.True(t, c.put("before"+strconv.Itoa(i), "x"))
				}
				require.True(t, b.client().put("gone", "x"))
				b.follow(a)
				require.True(t, b.host.readOnly.Load(), "at once")
				b.awaitUp()
				for i := range 1000 {
					require.True(t, c.put("after"+strconv.Itoa(i), fmt.Sprint(i)))
				}
				awaitEqual(t, a, b)
				require.Len(t, b.state(), 2000)
				require.InDelta(t, float64(a.clock.Now()), float64(b.clock.Now()), float64(soon))
				require.Equal(t, int64(1), b.keeper.suspended.Load())
				eventually(t, "the files have it", func() bool { return b.keeper.rewritten.Load() == 1 })
				require.False(t, b.host.loading.Load())
				require.Equal(t, "1", a.info()["connected_slaves"])
				require.Contains(t, a.info()["slave0"], "ip=b,port=2,state=online,offset=")
			})
		})
	}
}

// TestWhatTakesLongFindsItsKeys: a long command has the instant at which it began, so its effects
// follow clock records with later instants. Keys that have expired in between must still exist on
// a replica, too.
func TestWhatTakesLongFindsItsKeys(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", time.Hour)
		b.follow(a)
		b.awaitUp()
		fill := func(v *keyspace.Handle, from, to int) {
			for _, key := range []string{"kept", "gone"} {
				require.NoError(t, v.WriteHash(0, []byte(key), func(h *collection.Hash) error {
					for i := from; i < to; i++ {
						_, _ = h.Set([]byte("field"+strconv.Itoa(i)), []byte("value"))
					}
					return nil
				}))
			}
		}
		require.True(t, a.client().do(func(v *keyspace.Handle) {
			fill(v, 0, 40)
			expiry := v.Now().Add(time.Millisecond)
			require.True(t, v.Expire(0, []byte("kept"), expiry, 0))
			require.True(t, v.Expire(0, []byte("gone"), expiry, 0))
			eventually(t, "they have expired", func() bool { return a.clock.Now() > expiry })
			require.NoError(t, a.keeper.log.NoteClock())
			then := a.source.Offset()
			eventually(t, "the replica knows", func() bool { return b.source.Offset() >= then })
			b.ks.Sweep(1000)
			fill(v, 40, 41)
			v.Persist(0, []byte("kept"))
		}))
		awaitEqual(t, a, b)
		require.Len(t, b.state(), 1)
		awaitCount := func(want int) {
			t.Helper()
			eventually(t, "the replica has "+strconv.Itoa(want), func() bool {
				b.ks.Sweep(1000)
				return b.ks.Stats().Databases[0].Keys == want
			})
		}
		awaitCount(1) // the watermark has passed that instant
	})
}

// TestFormerPrimaryKeepsWhatHasJustExpired: the clock of the new primary may be behind, so keys
// that have expired on the old primary may not have expired there.
func TestFormerPrimaryKeepsWhatHasJustExpired(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a := w.start("a:1", 0)
		var expiry limit.Instant
		require.True(t, a.client().do(func(v *keyspace.Handle) {
			expiry = v.Now().Add(time.Millisecond)
			_, err := v.SetString(0, []byte("k"), []byte("v"), keyspace.SetOptions{Expiry: expiry})
			require.NoError(t, err)
		}))
		eventually(t, "it has expired", func() bool { return a.clock.Now() > expiry })
		a.node.ReplicaOf("nowhere", "1")
		eventually(t, "a replica", func() bool { return a.host.unblocked.Load() == 1 })
		require.Zero(t, a.ks.Sweep(1000).Removed)
		require.Empty(t, a.state())
		a.node.Promote(nil)
		a.awaitPrimary()
		require.Equal(t, 1, a.ks.Sweep(1000).Removed)
	})
}

// TestChain has a replica of a replica, and a third replica that follows that one.
func TestChain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b, c := w.start("a:1", 0), w.start("b:2", time.Hour), w.start("c:3", -time.Hour)
		cl := a.client()
		require.True(t, cl.put("k0", "x"))
		c.follow(b)
		b.follow(a)
		c.awaitUp()
		for i := range 200 {
			require.True(t, cl.put("k"+strconv.Itoa(i), "y"))
		}
		awaitEqual(t, a, b, c)
		full := b.keeper.suspended.Load()
		w.cut(c.address) // the chain recovers without a full resynchronization
		require.True(t, cl.put("more", "y"))
		awaitEqual(t, a, b, c)
		require.Equal(t, full, b.keeper.suspended.Load())

		full = c.keeper.suspended.Load()
		b.node.Promote(nil)
		b.awaitPrimary()
		cb := b.client()
		require.True(t, cb.put("of b", "1"))
		awaitEqual(t, b, c)
		require.Equal(t, full, c.keeper.suspended.Load(), "c went on after the promotion")
	})
}

// TestFormerPrimaryGoesOn: a primary that follows the replica which was promoted in its place
// gets a partial resynchronization, if both have the same stream up to the promotion.
func TestFormerPrimaryGoesOn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		ca, cb := a.client(), b.client()
		require.True(t, ca.put("k", "1"))
		b.follow(a)
		awaitEqual(t, a, b)
		a.node.ReplicaOf("nowhere", "1") // ends writes on a
		require.False(t, ca.put("k", "2"))
		eventually(t, "a is none any more", func() bool { return a.host.unblocked.Load() == 1 })
		eventually(t, "b has all", func() bool { return b.source.Offset() == a.source.Offset() })
		b.node.Promote(nil)
		b.awaitPrimary()
		a.follow(b)
		require.True(t, cb.put("k", "3"))
		awaitEqual(t, b, a)
		require.Equal(t, int64(0), a.keeper.suspended.Load(), "without a full sync")
		require.Zero(t, b.source.Counts().SyncFull)
		require.Equal(t, b.info()["second_repl_offset"], a.info()["second_repl_offset"])
	})
}

// TestPrimaryWithOwnChangesIsReplaced: a primary that has accepted other changes since gets a
// full resynchronization.
func TestPrimaryWithOwnChangesIsReplaced(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		ca, cb := a.client(), b.client()
		require.True(t, ca.put("k", "1"))
		b.follow(a)
		awaitEqual(t, a, b)
		w.isolate(b.address, true)
		require.True(t, ca.put("lost", "2"))
		b.node.Promote(nil)
		b.awaitPrimary()
		require.True(t, cb.put("k", "3"))
		w.isolate(b.address, false)
		a.follow(b)
		awaitEqual(t, b, a)
		require.Equal(t, int64(1), a.keeper.suspended.Load())
		require.NotContains(t, a.state(), "0/lost")
	})
}

func TestFollowingTheSameAgainChangesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		b.follow(a)
		awaitEqual(t, a, b)
		b.follow(a)
		require.Equal(t, "up", b.info()["master_link_status"])
		b.node.Promote(nil)
		b.awaitPrimary()
		id := b.info()["master_replid"]
		b.node.Promote(nil)
		require.Equal(t, id, b.info()["master_replid"])
		require.False(t, b.host.readOnly.Load())
	})
}

// TestEmptyPrimaryIsRefused: an empty primary is also refused if it does not send its data set.
func TestEmptyPrimaryIsRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		require.True(t, a.client().put("k", "1"))
		b.follow(a)
		awaitEqual(t, a, b)
		again := w.start("a:1", 0) // replaces the first node without a key; no node connects to the first again
		again.old = true
		w.cut(a.address)
		eventually(t, "refused", func() bool { return b.info()["cell_repl_error"] != "" })
		b.awaitField("cell_repl_error", "the primary has come back without a key and with a new history: it is not followed (repl-refuse-empty)")
		require.True(t, b.node.Refuses())
		require.Len(t, b.state(), 1)
		require.False(t, b.host.loading.Load())
		require.Equal(t, "100", b.info()["slave_priority"])
		s := *b.set.Load()
		s.RefuseOther = false
		b.set.Store(&s)
		awaitEqual(t, again, b)
		require.Empty(t, b.state())
	})
}

func TestReplicasThatAreMissingOrGone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		for _, p := range []*member{a, b} {
			p.change(func(s *replication.Settings) { s.MinReplicas, s.MinReplicasMaxLag, s.ServeStale = 1, soon, false })
		}
		require.True(t, a.lacksReplicas(), "at once")
		b.follow(a)
		eventually(t, "accepted", func() bool { return !a.lacksReplicas() })
		require.Equal(t, "min_slaves_good_slaves", a.node.Info()[2].Name)
		require.Equal(t, "1", a.info()["min_slaves_good_slaves"])
		require.False(t, b.host.noReplicas.Load(), "a replica needs none")
		b.awaitUp()
		require.False(t, b.host.masterDown.Load())
		w.isolate(a.address, true)
		eventually(t, "stale", b.host.masterDown.Load)
		eventually(t, "refused again", a.lacksReplicas)
		b.awaitField("cell_repl_error", "connecting to the primary: connection refused")

		b.change(func(s *replication.Settings) { s.MinReplicasMaxLag = 24 * time.Hour })
		b.host.loosened.Store(false)
		b.node.Promote(nil)
		b.awaitPrimary()
		require.True(t, b.lacksReplicas(), "it has none")
		require.False(t, b.host.loosened.Load(), "nor has it accepted changes before that was known")
	})
}

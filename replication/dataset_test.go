package replication_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/replication"
)

// refused waits until a replica refuses the data set of its primary, and checks that it has kept
// its state.
func (m *member) refused(keys int) {
	m.web.t.Helper()
	eventually(m.web.t, "refused", func() bool { return strings.Contains(m.info()["cell_repl_error"], "another data set") })
	require.Contains(m.web.t, m.info()["cell_repl_error"], "repl-refuse-empty no")
	require.True(m.web.t, m.node.Refuses())
	require.Len(m.web.t, m.state(), keys)
	require.False(m.web.t, m.host.loading.Load())
	require.Equal(m.web.t, "down", m.info()["master_link_status"])
	require.Equal(m.web.t, "100", m.info()["slave_priority"], "Sentinel may promote it")
}

// TestOtherDataSetIsRefused: a primary that restarts without its keys does not empty its replica,
// whatever keys it has been given since.
func TestOtherDataSetIsRefused(t *testing.T) {
	for name, since := range map[string][]string{"nothing": nil, "a key": {"l"}} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWeb(t)
				a, b, c := w.start("a:1", 0), w.start("b:2", 0), w.start("c:3", 0)
				require.True(t, a.client().put("k", "1"))
				require.True(t, a.client().put("k2", "1"))
				b.follow(a)
				awaitEqual(t, a, b)
				c.follow(b)
				awaitEqual(t, b, c)
				set := a.info()["cell_data_set"]
				require.True(t, persistence.IsHistory(set))
				require.Equal(t, []string{set, set}, []string{b.info()["cell_data_set"], c.info()["cell_data_set"]})

				again := w.start("a:1", 0) // replaces the first node at this address
				for _, key := range since {
					require.True(t, again.client().put(key, "1"))
				}
				w.cut(a.address)
				b.refused(2)
				require.Len(t, c.state(), 2)
				require.Zero(t, again.source.Good(soon), "it counts for nothing")
				require.Zero(t, again.node.Acked(0))

				s := *b.set.Load()
				s.RefuseOther = false
				b.set.Store(&s)
				awaitEqual(t, again, b)
				require.False(t, b.node.Refuses())
				require.Len(t, b.state(), len(since))
				require.NotEqual(t, set, b.info()["cell_data_set"])
				require.Equal(t, again.info()["cell_data_set"], b.info()["cell_data_set"])
			})
		})
	}
}

// TestRestoredDataSetIsKept: a promoted replica does not by itself undo a restore of the old
// primary. If the restored server is promoted, the other one follows it and accepts its data set.
func TestRestoredDataSetIsKept(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		require.True(t, a.client().put("k", "1"))
		b.follow(a)
		awaitEqual(t, a, b)
		set := a.info()["cell_data_set"]
		b.node.Promote(nil)
		b.awaitPrimary()
		require.True(t, b.client().put("k2", "1"))

		restored := w.start("a:1", 0)
		restored.keeper.restored.Store(true)
		require.True(t, restored.client().put("old", "1"))
		own := restored.info()["cell_data_set"]
		restored.node.ReplicaOf("b", "2")
		eventually(t, "refused", func() bool {
			return strings.Contains(restored.info()["cell_repl_error"], "than the backup that this server was restored from")
		})
		require.True(t, restored.node.Refuses())
		require.Equal(t, "100", restored.info()["slave_priority"], "Sentinel may promote it")
		require.Contains(t, restored.state(), "0/old")
		require.Equal(t, []string{own, set}, []string{restored.info()["cell_data_set"], b.info()["cell_data_set"]})

		restored.node.Promote(nil)
		restored.awaitPrimary()
		b.follow(restored)
		awaitEqual(t, restored, b)
		require.Equal(t, own, b.info()["cell_data_set"])
		require.Len(t, b.state(), 1)
	})
}

// TestRestoredServerGivesUp: a restored server accepts another data set if the operator allows
// it, and then behaves like any other server.
func TestRestoredServerGivesUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		require.True(t, a.client().put("k", "1"))
		require.True(t, b.client().put("old", "1"))
		b.keeper.restored.Store(true)
		b.node.ReplicaOf("a", "1")
		eventually(t, "refused", b.node.Refuses)
		s := *b.set.Load()
		s.RefuseOther = false
		b.set.Store(&s)
		awaitEqual(t, a, b)
		require.False(t, b.keeper.Restored())
		require.Len(t, b.state(), 1)
	})
}

// TestPoliciesAloneAreKept: a replica that has policies but no other key also refuses an empty
// primary.
func TestPoliciesAloneAreKept(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		require.True(t, a.client().do(func(v *keyspace.Handle) {
			_, err := v.SetString(keyspace.System, []byte("policy"), []byte("1"), keyspace.SetOptions{Expiry: entry.NoExpiry})
			require.NoError(t, err)
		}))
		b.follow(a)
		awaitEqual(t, a, b)
		w.start("a:1", 0)
		w.cut(a.address)
		b.refused(1)
	})
}

// TestPromotedReplicaStillRefuses: Sentinel may order a replica that was promoted manually to
// follow the primary that it refused. It refuses again. In the other direction, the empty primary
// follows.
func TestPromotedReplicaStillRefuses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		require.True(t, a.client().put("k", "1"))
		b.follow(a)
		awaitEqual(t, a, b)
		set := b.info()["cell_data_set"]
		again := w.start("a:1", 0)
		require.True(t, again.client().put("l", "1"))
		w.cut(a.address)
		b.refused(1)

		b.node.Promote(nil)
		b.awaitPrimary()
		require.False(t, b.node.Refuses())
		require.Equal(t, set, b.info()["cell_data_set"])
		require.True(t, b.client().put("k2", "1"))
		b.follow(again)
		b.refused(2)
		b.node.Promote(nil)
		b.awaitPrimary()
		again.follow(b)
		awaitEqual(t, b, again)
		require.Len(t, again.state(), 2)
		require.Equal(t, set, again.info()["cell_data_set"])
	})
}

// TestSameDataSetIsTakenOver: the data set stays the same after a FLUSHALL and a restart, a
// promotion, and a backup.
func TestSameDataSetIsTakenOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		require.True(t, a.client().put("k", "1"))
		b.follow(a)
		awaitEqual(t, a, b)
		again := w.startWith("a:1", 0, func(o *replication.Options) { o.Files.SetDataSet(a.keeper.DataSet()) })
		w.cut(a.address)
		awaitEqual(t, again, b)
		require.Empty(t, b.state())

		require.True(t, again.client().put("k", "2"))
		awaitEqual(t, again, b)
		b.node.Promote(nil)
		b.awaitPrimary()
		require.True(t, again.client().put("lost", "1"))
		again.follow(b)
		awaitEqual(t, b, again)
		require.Len(t, again.state(), 1)
	})
}

// TestUnknownDataSetMatches: files and servers of older versions have no data set ID, which
// matches any.
func TestUnknownDataSetMatches(t *testing.T) {
	for name, c := range map[string]struct {
		primary, replica string
		old              bool
		want             string // empty for a new ID
	}{
		"of the replica":           {primary: someID, want: someID},
		"of the primary":           {replica: someID, want: someID},
		"of both":                  {},
		"of a primary that is old": {primary: someID, replica: someID[1:] + "0", old: true, want: "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWeb(t)
				z, a, b := w.start("z:9", 0), w.start("a:1", 0), w.start("b:2", 0)
				require.True(t, z.client().put("k", "1"))
				b.follow(z) // so it has the state of a primary
				awaitEqual(t, z, b)
				require.True(t, a.client().put("l", "1"))
				a.old = c.old
				a.keeper.SetDataSet(c.primary)
				b.keeper.SetDataSet(c.replica)
				b.follow(a)
				awaitEqual(t, a, b)
				require.Contains(t, b.state(), "0/l")
				switch c.want {
				case "unknown":
					require.Empty(t, b.keeper.DataSet())
				case "":
					require.True(t, persistence.IsHistory(b.keeper.DataSet()))
					require.Equal(t, a.keeper.DataSet(), b.keeper.DataSet())
				default:
					require.Equal(t, c.want, b.keeper.DataSet())
					require.Equal(t, c.want, a.info()["cell_data_set"])
				}
			})
		})
	}
}

// TestHalfAStateIsNoDataSet: a replica that is promoted during its full resynchronization begins
// a new data set.
func TestHalfAStateIsNoDataSet(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		b := w.start("b:2", 0)
		set := b.keeper.DataSet()
		w.says("evil:1", "+FULLRESYNC "+someID+" 1000 "+someID+" cell1\r\n", (&speech{t: t, offset: begin}).block("half").out)
		b.node.ReplicaOf("evil", "1")
		eventually(t, "half a state", b.host.loading.Load)
		b.node.Promote(nil)
		b.awaitPrimary()
		require.NotContains(t, []string{set, someID}, b.keeper.DataSet())
		require.True(t, persistence.IsHistory(b.keeper.DataSet()))
	})
}

// TestRestartedReplicaRefusesAnotherDataSet: a restarted replica knows the data set of its files.
func TestRestartedReplicaRefusesAnotherDataSet(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		require.True(t, a.client().put("k", "1"))
		b.follow(a)
		awaitEqual(t, a, b)
		b.stop()
		a.stop()
		require.True(t, w.start("a:1", 0).client().put("l", "1"))
		again := w.startAgain(b, 0)
		again.node.ReplicaOf("a", "1")
		again.refused(1)
	})
}

package replication_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/replication"
)

// meddled is a keyspace with hooks for the test.
type meddled struct {
	replication.Keyspace
	fails atomic.Bool            // fail the next ApplyRecord
	alone atomic.Pointer[func()] // called in the next Alone
}

func (m *meddled) ApplyRecord(record []byte, at limit.Instant) error {
	if m.fails.Swap(false) {
		return errors.New("a table has no room")
	}
	return m.Keyspace.ApplyRecord(record, at)
}

func (m *meddled) Exclusively(f func()) {
	m.Keyspace.Exclusively(f)
	if meddle := m.alone.Swap(nil); meddle != nil {
		(*meddle)()
	}
}

func (w *web) startMeddled(address string) (*member, *meddled) {
	k := &meddled{}
	p := w.startWith(address, 0, func(o *replication.Options) {
		k.Keyspace = o.Keyspace
		o.Keyspace = k
	})
	return p, k
}

// TestRecordThatDoesNotFitTheState: if a valid record cannot be applied, the state is not the
// primary's. To request the record again would not help, so a full resynchronization follows.
func TestRecordThatDoesNotFitTheState(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a := w.start("a:1", 0)
		b, k := w.startMeddled("b:2")
		require.True(t, a.client().put("k", "1"))
		b.follow(a)
		awaitEqual(t, a, b)
		k.fails.Store(true)
		require.True(t, a.client().put("k", "2"))
		eventually(t, "the record has come", func() bool { return !k.fails.Load() })
		eventually(t, "another full sync", func() bool { return a.source.Counts().SyncFull == 2 })
		awaitEqual(t, a, b)
	})
}

// TestPromotionThatIsTakenBack: a node that is promoted during a full resynchronization, and then
// ordered to follow another node, has a complete, empty state, and is not loading.
func TestPromotionThatIsTakenBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		b, k := w.startMeddled("b:2")
		w.says("evil:1", "+FULLRESYNC "+someID+" 1000 cell1\r\n", (&speech{t: t, offset: begin}).block("half").out)
		b.node.ReplicaOf("evil", "1")
		eventually(t, "half a state", b.host.loading.Load)
		follow := func() { b.node.ReplicaOf("nowhere", "1") }
		k.alone.Store(&follow)
		b.node.Promote(nil)
		eventually(t, "it is promoted, and follows again", func() bool {
			return k.alone.Load() == nil && b.info()["cell_repl_error"] == "connecting to the primary: connection refused"
		})
		require.False(t, b.host.loading.Load())
		require.Equal(t, "100", b.info()["slave_priority"])
		require.Empty(t, b.state())
	})
}

package replication_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/replication"
)

// meddled is a keyspace in whose calls a test takes part.
type meddled struct {
	replication.Keyspace
	fails atomic.Bool            // a record cannot be applied, once
	alone atomic.Pointer[func()] // is called with the keyspace alone, once
}

func (k *meddled) ApplyRecord(record []byte, at limit.Instant) error {
	if k.fails.Swap(false) {
		return errors.New("a table has no room")
	}
	return k.Keyspace.ApplyRecord(record, at)
}

func (k *meddled) Alone(f func()) {
	k.Keyspace.Exclusively(f)
	if meddle := k.alone.Swap(nil); meddle != nil {
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

// TestRecordThatDoesNotFitTheState: a record that is in order and cannot be applied shows that the
// state is not the primary's. To ask for the record again would not help, so everything is copied.
func TestRecordThatDoesNotFitTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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

// TestPromotionThatIsTakenBack: a node that is told to lead during a full sync, and then to follow another,
// has a whole state, an empty one, and does not say that it is being loaded.
func TestPromotionThatIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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

package transactions_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/transport"
)

// lateStore lets no call run until late is closed.
type lateStore struct {
	env.Local
	late chan struct{}
}

func (s lateStore) Enter() bool {
	<-s.late
	return s.Local.Enter()
}

// TestExclusiveTransactionCountsAsClientMemoryUntilItHasRun: a transaction that waits for
// exclusive execution counts as memory of its client until it has run.
func TestExclusiveTransactionCountsAsClientMemoryUntilItHasRun(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		late := make(chan struct{})
		var background atomic.Bool // whether new stores are for goroutines in the background
		s := w.StartWith(func(o *server.Options) {
			o.Env = func(o *env.Options) {
				made := o.NewStore
				o.NewStore = func() env.Store {
					if background.Load() {
						return lateStore{made().(env.Local), late}
					}
					return made()
				}
			}
		})
		e := s.Engine()
		session, _ := e.Open(inproc.NewPeer())
		worker := e.NewWorker()
		background.Store(true)
		const loop = "local n = 0 while n < 1 do n = n + 1 end return n"
		packet := slices.Concat(inproc.Encode(nil, "WATCH", "k"), inproc.Encode(nil, "MULTI"), inproc.Encode(nil, "ECHO", strings.Repeat("x", 100_000)),
			inproc.Encode(nil, "EVAL", loop, "0"), inproc.Encode(nil, "EXEC"))
		require.Equal(t, transport.Park, session.Feed(worker, packet, nil).Next)
		w.Settle()
		require.InDelta(t, 100_000, e.ClientMemory(), 10_000)
		close(late)
		w.Settle()
		require.Equal(t, transport.Read, session.Feed(worker, nil, nil).Next, "it has run")
		require.Zero(t, e.ClientMemory())
		session.Closed()
	})
}

package epoll_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/epoll"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// TestWakeBeforeArrivalHasNoEffect aborts or wakes a connection while it is on its way to a loop, a
// new connection or one from another loop. The loop may get that notice before the connection.
// Until the connection arrives, the notice has no effect, in particular not on other connections.
func TestWakeBeforeArrivalHasNoEffect(t *testing.T) {
	for _, moved := range []bool{false, true} {
		for _, abort := range []bool{false, true} {
			h := transporttest.NewLineHandler()
			e := epollOf(t, 1)(h, transporttest.PatientLimits(), transporttest.NewClock()).(*epoll.Transport)
			late := epoll.NewLatecomer(t, e, moved)
			require.Len(t, h.Sessions(), 2, "the latecomer and a neighbour")
			mail := transport.Peer.Wake
			if abort {
				mail = transport.Peer.Abort
			}
			mail(h.Sessions()[0].Peer)
			late.Collect()
			require.Equal(t, []bool{true, false}, []bool{late.Neighbour(), late.Arrived()}, "moved %v, abort %v", moved, abort)
			require.Zero(t, h.Closed.Load())
			late.Arrive()
			late.Collect()
			require.Equal(t, []bool{true, !abort}, []bool{late.Neighbour(), late.Arrived()}, "moved %v, abort %v", moved, abort)
			require.Equal(t, abort, h.Closed.Load() == 1)
			late.End()
			require.NoError(t, e.Shutdown(t.Context()))
			require.Empty(t, h.Breaches)
		}
	}
}

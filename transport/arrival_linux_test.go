package transport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

// TestWakeBeforeArrivalHasNoEffect aborts or wakes a connection while it is on its way to
// a loop, a new one or another one. The loop may see that before the connection arrives.
// Until then it has no effect, least of all on other connections.
func TestWakeBeforeArrivalHasNoEffect(t *testing.T) {
	for _, moved := range []bool{false, true} {
		for _, abort := range []bool{false, true} {
			h := newLineHandler()
			e := epollOf(t, 1)(h, patientLimits(), transport.NewClock()).(*transport.Epoll)
			late := transport.NewLatecomer(t, e, moved)
			require.Len(t, h.all(), 2, "the latecomer and a neighbour")
			mail := transport.Peer.Wake
			if abort {
				mail = transport.Peer.Abort
			}
			mail(h.all()[0].peer)
			late.Collect()
			require.Equal(t, []bool{true, false}, []bool{late.Neighbour(), late.Arrived()}, "moved %v, abort %v", moved, abort)
			require.Zero(t, h.closed.Load())
			late.Arrive()
			late.Collect()
			require.Equal(t, []bool{true, !abort}, []bool{late.Neighbour(), late.Arrived()}, "moved %v, abort %v", moved, abort)
			require.Equal(t, abort, h.closed.Load() == 1)
			late.End()
			require.NoError(t, e.Shutdown(t.Context()))
			require.Empty(t, h.breaches)
		}
	}
}

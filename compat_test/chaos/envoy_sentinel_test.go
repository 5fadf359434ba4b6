package chaos_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
)

// TestSentinelsFailOverUnderEnvoyCallers kills or pauses a primary while 64 callers call the node that their health check finds.
// Stock sentinels promote the replica, and make the old primary a replica. With repl-ack-replies 1 no more is admitted than the
// limit, even if a paused primary goes on while callers still reach it.
func TestSentinelsFailOverUnderEnvoyCallers(t *testing.T) {
	skipShort(t)
	storetest.Each(t, func(t *testing.T, watcher storetest.Engine) {
		var addrs []string
		s := storetest.Cellserver(t, watcher).Sentinels(t, 1, storetest.Options{
			NodeTimeout: standbyDown, Args: []string{"--repl-ack-replies", "1", "--repl-ack-timeout", "500"},
			OwnArgs: func() []string {
				o, addr := serviceNode(t)
				addrs = append(addrs, addr)
				return o.Args
			},
		})
		l := startServiceLoad(t, addrs...)
		primary := s.Master
		failovers := scaled(2, 20)
		for i := range failovers {
			l.awaitAdmitted(t, int64(serviceLimit*(i+1)/(failovers+2)))
			killed := i%2 == 0
			if killed {
				primary.Kill()
			} else {
				primary.Pause()
			}
			next := s.AwaitFailover(primary)
			if killed {
				primary.Follow(next)
				primary.AwaitReady()
			} else {
				primary.Resume() // it takes itself for the primary until the sentinels tell it
			}
			primary.AwaitLink()
			primary = next
		}
		admitted, failed := l.end(t)
		t.Logf("%d failovers: %d of %d admitted, %d calls failed", failovers, admitted, serviceLimit, failed)
		require.LessOrEqual(t, admitted, int64(serviceLimit))
		require.GreaterOrEqual(t, admitted+failed, int64(serviceLimit))
	})
}

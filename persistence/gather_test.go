package persistence_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// bell is a waker that can be waited for.
type bell chan struct{}

// Wake implements persistence.Waker.
func (b bell) Wake() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// TestEverybodyIsWoken: under SyncAlways, whoever asks while an fsync is being put
// off, or while one is in flight, is woken by it or by the next; nobody is forgotten.
func TestEverybodyIsWoken(t *testing.T) {
	s := mustOpen(t, faultfs.New(), persistence.SyncAlways)
	defer s.close()
	const clients, calls = 30, 200
	var all sync.WaitGroup
	outcomes := make([]int, clients)
	for i := range clients {
		all.Go(func() {
			ring := make(bell, 1)
			for range calls {
				pos := s.log.Append([]byte{65, byte(i % 3)}, begin)
				out := s.log.Await(pos, ring)
				for out == persistence.Pending {
					<-ring
					out = s.log.Await(pos, ring)
				}
				if out == persistence.Kept {
					outcomes[i]++
				}
			}
		})
	}
	all.Wait()
	for i := range clients {
		require.Equal(t, calls, outcomes[i])
	}
	require.LessOrEqual(t, s.log.Stats().Syncs, int64(clients*calls))
}

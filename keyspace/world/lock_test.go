package world_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/keyspace/world"
)

// TestStoppedWorldIsExclusive has many goroutines run batches while some of them stop the world. No
// other goroutine is inside while the world is stopped.
func TestStoppedWorldIsExclusive(t *testing.T) {
	var g world.Lock
	const all, batches = 8, 3000
	var inside atomic.Int32
	var alone int // guarded by the world lock
	var closed atomic.Int32
	var wg sync.WaitGroup
	for n := range all {
		wg.Go(func() {
			st := new(world.Member)
			g.Add(st)
			defer g.Remove(st)
			for i := range batches {
				for !g.Enter(st) {
					opened := make(chan struct{})
					g.NotifyStart(func() { close(opened) })
					<-opened
				}
				inside.Add(1)
				if (i+n)%50 == 0 {
					inside.Add(-1)
					if g.Stop(st) {
						if inside.Load() != 0 {
							t.Error("somebody else is inside")
						}
						alone++
						closed.Add(1)
						g.Start()
					}
				} else {
					inside.Add(-1)
				}
				st.Leave()
			}
		})
	}
	wg.Wait()
	require.Positive(t, alone)
	require.Equal(t, int(closed.Load()), alone)
}

package keyspace_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/keyspace"
)

func TestGate(t *testing.T) {
	ks, v, _ := open(t, keyspace.Options{})
	other := ks.NewView()
	g := ks.Gate()
	var woken []int
	g.Wait(func() { woken = append(woken, 0) })
	require.Equal(t, []int{0}, woken, "an open gate is not waited for")

	require.True(t, v.Enter())
	require.True(t, v.CloseGate(), "the closer itself may be inside")
	require.False(t, other.Enter())
	require.False(t, other.CloseGate(), "one at a time")
	g.Wait(func() { woken = append(woken, 1) })
	g.Wait(func() { woken = append(woken, 2) })
	require.Equal(t, []int{0}, woken)
	require.Zero(t, ks.Sweep(100).Looked, "nothing expires behind the back of who closed it")
	g.Open()
	require.Equal(t, []int{0, 1, 2}, woken, "in the order in which they came")
	v.Leave()
	require.True(t, other.Enter())
	other.Leave()
	other.Close()
}

// TestGateExcludes has many views run batches while some of them close the gate:
// who closed it must be alone.
func TestGateExcludes(t *testing.T) {
	ks, _, _ := open(t, keyspace.Options{})
	const views, batches = 8, 3000
	var inside atomic.Int32
	var alone int // guarded by the gate
	var closed atomic.Int32
	var wg sync.WaitGroup
	for n := range views {
		wg.Go(func() {
			v := ks.NewView()
			defer v.Close()
			for i := range batches {
				for !v.Enter() {
					opened := make(chan struct{})
					ks.Gate().Wait(func() { close(opened) })
					<-opened
				}
				inside.Add(1)
				if (i+n)%50 == 0 {
					inside.Add(-1)
					if v.CloseGate() {
						if inside.Load() != 0 {
							t.Error("somebody else is inside")
						}
						alone++
						closed.Add(1)
						ks.Gate().Open()
					}
				} else {
					inside.Add(-1)
				}
				v.Leave()
			}
		})
	}
	wg.Wait()
	require.Positive(t, alone)
	require.Equal(t, int(closed.Load()), alone)
}

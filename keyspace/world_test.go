package keyspace_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/keyspace"
)

func TestStoppedWorldLetsNobodyIn(t *testing.T) {
	ks, v, _ := open(t, keyspace.Options{})
	other := ks.NewHandle()
	g := ks.World()
	var woken []int
	g.NotifyStart(func() { woken = append(woken, 0) })
	require.Equal(t, []int{0}, woken, "a world that runs is not waited for")

	require.True(t, v.Enter())
	require.True(t, v.StopWorld(), "the closer itself may be inside")
	require.False(t, other.Enter())
	require.False(t, other.StopWorld(), "one at a time")
	g.NotifyStart(func() { woken = append(woken, 1) })
	g.NotifyStart(func() { woken = append(woken, 2) })
	require.Equal(t, []int{0}, woken)
	require.Zero(t, ks.Sweep(100).Looked, "nothing expires behind the back of who closed it")
	g.Start()
	require.Equal(t, []int{0, 1, 2}, woken, "in the order in which they came")
	v.Leave()
	require.True(t, other.Enter())
	other.Leave()
	other.Close()
}

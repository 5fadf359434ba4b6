package records_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/policy/registry"
)

// TestChangesAreConfirmed: only a change that the engine still has counts as confirmed, whatever its replicas say.
func TestChangesAreConfirmed(t *testing.T) {
	m := remotedouble.NewRecords()
	s := newServer(&m, new([]func()), rand.New(rand.NewPCG(1, 1)))
	c := s.Changing()
	require.NoError(t, c.Confirm(), "there is no change")
	require.NoError(t, s.Load(t.Context()))
	set := func(key, value string) {
		t.Helper()
		_, err := c.Refresh()
		require.NoError(t, err)
		require.NoError(t, c.SetStrings([][]byte{[]byte(key), []byte(value)}, 0))
	}
	set("a", "1")
	require.NoError(t, c.Confirm(), "there is no replica")
	m.Replicas.Set(1, false)
	before := m.Clone()
	set("a", "2")
	require.NoError(t, c.Confirm())
	require.Equal(t, m.Strings[head], m.Strings["{policies}:confirm"])
	require.NoError(t, c.Delete([]byte("a")))
	require.NoError(t, c.Confirm())
	require.NoError(t, c.SetStrings(nil, 0), "no pairs are no change")
	require.NoError(t, c.Confirm())

	m = before // a failover: the new master has replicas, too
	require.ErrorContains(t, c.Confirm(), "a failover of the store has taken the change of policies")
	set("b", "1")
	set("b", "2") // counts up to the number of the lost change
	require.NoError(t, c.Confirm())
	s.faults = 100
	require.ErrorIs(t, c.Confirm(), registry.ErrUnconfirmed)
	require.EqualValues(t, 1, s.Unconfirmed())
}

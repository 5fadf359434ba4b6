package policystore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/command/policystore"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy/registry"
)

// TestNothingIsWrittenOnceTheServerIsAReplica: a caller that began while the server was a primary
// can neither set nor delete after it has become a replica.
func TestNothingIsWrittenOnceTheServerIsAReplica(t *testing.T) {
	s, err := inproc.Feed(limit.Instant(1_700_000_000e9))
	require.NoError(t, err)
	defer s.Close()
	e := s.Server().Engine()
	key := []byte("main/api")
	e.WithStore(0, func(any env.Store) {
		st := any.(policystore.Backing)
		there := func() bool { return st.Exists(registry.Database, key) }
		policystore.Outside(st, &e.Server, func(left registry.Store) {
			require.NoError(t, left.SetStrings([][]byte{key, []byte("v")}, registry.Spare))
			e.SetHalt(command.HaltReadOnly, true)
			require.ErrorIs(t, left.SetStrings([][]byte{key, []byte("other")}, registry.Urgent), command.ErrReadOnly)
			require.ErrorIs(t, left.Delete(key), command.ErrReadOnly)
		})
		require.True(t, there())
		e.SetHalt(command.HaltReadOnly, false)
		policystore.Outside(st, &e.Server, func(left registry.Store) { require.NoError(t, left.Delete(key)) })
		require.False(t, there())
	})
}

package commands_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
)

// TestChangesSayWhatExplains: the list of changes has, without secrets, what an operator changes
// for all clients, and does not have calls that were refused or changed nothing.
func TestChangesSayWhatExplains(t *testing.T) {
	s, err := inproc.Feed(limit.Instant(1_700_000_000e9))
	require.NoError(t, err)
	defer s.Close()
	engine := s.Server().Engine()
	started := engine.Changes.Since(0)
	require.Len(t, started, 1)
	require.Equal(t, "start", started[0].Kind)
	last := started[0].ID
	for _, row := range []struct {
		kind, text string
		call       []string
	}{
		{"config", "CONFIG SET maxmemory 0 → 1073741824", []string{"CONFIG", "SET", "maxmemory", "1gb"}},
		{"", "", []string{"CONFIG", "SET", "maxmemory", "1gb"}},
		{"", "", []string{"CONFIG", "SET", "maxmemory", "nonsense"}},
		{"config", "CONFIG SET requirepass", []string{"CONFIG", "SET", "requirepass", "hunter2"}},
		{"flush", "FLUSHDB db=0", []string{"FLUSHDB"}},
		{"flush", "FLUSHALL", []string{"FLUSHALL"}},
		{"acl", "ACL SETUSER app", []string{"ACL", "SETUSER", "app", "on", ">hunter2"}},
		{"", "", []string{"ACL", "SETUSER", "app", "+nonsense"}},
		{"acl", "ACL DELUSER app other", []string{"ACL", "DELUSER", "app", "other"}},
		{"pause", "CLIENT PAUSE 1", []string{"CLIENT", "PAUSE", "1", "WRITE"}},
		{"pause", "CLIENT UNPAUSE", []string{"CLIENT", "UNPAUSE"}},
		{"script", "SCRIPT FLUSH", []string{"SCRIPT", "FLUSH"}},
		{"", "", []string{"SCRIPT", "KILL"}},
		{"", "", []string{"PING"}},
	} {
		_, err := s.Do(row.call...)
		require.NoError(t, err)
		since := engine.Changes.Since(last)
		if row.kind == "" {
			require.Empty(t, since, "%q", row.call)
			continue
		}
		require.Len(t, since, 1, "%q", row.call)
		require.Equal(t, row.kind, since[0].Kind)
		require.Equal(t, row.text, since[0].Text)
		require.Equal(t, "default, from 127.0.0.1:1", since[0].By)
		require.EqualValues(t, 1_700_000_000_000, since[0].At)
		last = since[0].ID
	}
}

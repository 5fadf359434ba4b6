package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/replication/protocol"
)

// TestPrimaryInfo: the lines and their order are those of Redis 7.
func TestPrimaryInfo(t *testing.T) {
	info := protocol.PrimaryInfo{
		ReplID: "a", ReplID2: "b", Offset: 7, SecondOffset: 3, FailoverState: "waiting-for-sync", BacklogActive: true,
		BacklogSize: 16, BacklogFrom: 2, Backlog: 5, Replicas: []protocol.Field{{Name: "slave0", Value: "ip=h"}},
	}
	require.Equal(t, []protocol.Field{
		{Name: "role", Value: "master"},
		{Name: "connected_slaves", Value: "1"},
		{Name: "slave0", Value: "ip=h"},
		{Name: "master_failover_state", Value: "waiting-for-sync"},
		{Name: "master_replid", Value: "a"},
		{Name: "master_replid2", Value: "b"},
		{Name: "master_repl_offset", Value: "7"},
		{Name: "second_repl_offset", Value: "3"},
		{Name: "repl_backlog_active", Value: "1"},
		{Name: "repl_backlog_size", Value: "16"},
		{Name: "repl_backlog_first_byte_offset", Value: "2"},
		{Name: "repl_backlog_histlen", Value: "5"},
	}, info.Fields())

	none := protocol.PrimaryInfo{ReplID: "a"}.Fields()
	require.Contains(t, none, protocol.Field{Name: "second_repl_offset", Value: "-1"})
	require.Contains(t, none, protocol.Field{Name: "master_replid2", Value: "0000000000000000000000000000000000000000"})
	require.Contains(t, none, protocol.Field{Name: "master_failover_state", Value: "no-failover"})
}

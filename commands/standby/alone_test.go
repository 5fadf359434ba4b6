package standby_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/standby"
	"github.com/cellserver/cellserver/transport"
)

// TestAlone: a server without replication is a primary without replicas.
func TestAlone(t *testing.T) {
	var n standby.Node = standby.Alone{RunID: "0123456789012345678901234567890123456789"}
	require.False(t, standby.Replicates(n))
	require.False(t, standby.Replicates(nil))

	n.Follow("h", "1")
	n.Lead(nil)
	n.Hear(1, standby.ReplicaSays{Ack: 1})
	require.Equal(t, standby.Role{}, n.Role())

	reply, p, refused := n.Sync(standby.SyncCall{})
	require.Empty(t, reply)
	require.Nil(t, p)
	require.Equal(t, standby.ErrAlone, refused)
	require.Equal(t, standby.ErrAlone, n.Failover(standby.FailoverCall{}))

	for replicas, want := range map[int]transport.Outcome{-1: transport.Kept, 0: transport.Kept, 1: transport.Pending} {
		acked, is := n.Await(replicas, 1, nil)
		require.Zero(t, acked)
		require.Equal(t, want, is, replicas)
	}
	require.Zero(t, n.Acked(0))
	require.Equal(t, standby.Counts{}, n.Counts())
}

// TestPrimaryInfo: the lines and their order are those of Redis 7.
func TestPrimaryInfo(t *testing.T) {
	info := standby.PrimaryInfo{
		ReplID: "a", ReplID2: "b", Offset: 7, SecondOffset: 3, FailoverState: "waiting-for-sync", BacklogActive: true,
		BacklogSize: 16, BacklogFrom: 2, Backlog: 5, Replicas: []standby.Field{{Name: "slave0", Value: "ip=h"}},
	}
	require.Equal(t, []standby.Field{
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

	none := standby.PrimaryInfo{ReplID: "a"}.Fields()
	require.Contains(t, none, standby.Field{Name: "second_repl_offset", Value: "-1"})
	require.Contains(t, none, standby.Field{Name: "master_replid2", Value: "0000000000000000000000000000000000000000"})
	require.Contains(t, none, standby.Field{Name: "master_failover_state", Value: "no-failover"})
}

package env_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// TestStandalone: a server without replication is a primary without replicas.
func TestStandalone(t *testing.T) {
	const alone resp.Error = "ERR This server does not replicate: its keys are in the store of --store, which replicates them itself"
	var n env.Node = env.Standalone{RunID: "0123456789012345678901234567890123456789"}
	require.Equal(t, alone, env.Refusal(n))
	require.Contains(t, env.Refusal(env.Standalone{Manual: true}), "its clock is manual")

	n.ReplicaOf("h", "1")
	n.Promote(nil)
	n.Acknowledge(1, protocol.Ack{Applied: 1})
	require.Equal(t, protocol.Role{}, n.Role())

	reply, p, refused := n.PSync(protocol.PSync{})
	require.Empty(t, reply)
	require.Nil(t, p)
	require.Equal(t, alone, refused)
	require.Equal(t, alone, n.Failover(protocol.Failover{}))

	for replicas, want := range map[int]transport.Outcome{-1: transport.Kept, 0: transport.Kept, 1: transport.Pending} {
		acked, is := n.Await(replicas, 1, nil)
		require.Zero(t, acked)
		require.Equal(t, want, is, replicas)
	}
	require.Zero(t, n.Acked(0))
	require.Equal(t, protocol.Counts{}, n.Counts())
}

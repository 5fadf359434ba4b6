package admin

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// clusterCommands returns the commands about clusters. They all reply with an error, so that
// clients in cluster mode treat the server as a single node.
func clusterCommands() []*command.Command {
	const none = "Replies that this server is not a cluster."
	return command.Entries(command.Defaults{
		Categories: command.CatConnection, Group: "cluster", Since: "1.0.0", Complexity: "O(1)",
	}, []*command.Command{
		{
			Name: "cluster", Arity: -2, Flags: command.FlagStale, Categories: command.CatSlow,
			Summary: none, Syntax: "subcommand [arg ...]", Reply: "an error",
			Run: noCluster,
		},
		{
			Name: "asking", Arity: 1, Flags: command.FlagFast | command.FlagConnection,
			Summary: none, Reply: "an error", Run: noCluster,
		},
		{
			Name: "readonly", Arity: 1, Flags: command.FlagLoading | command.FlagStale | command.FlagFast | command.FlagConnection,
			Summary: none, Reply: "an error", Run: noCluster,
		},
		{
			Name: "readwrite", Arity: 1, Flags: command.FlagLoading | command.FlagStale | command.FlagFast | command.FlagConnection,
			Summary: none, Reply: "an error", Run: noCluster,
		},
	})
}

func noCluster(c *command.Call) { c.Fail(resp.ErrClusterDisabled) }

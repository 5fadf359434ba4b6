package admin

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

// clusterCommands returns the CLUSTER commands, which all reply with an error: clients in cluster
// mode then treat the server as a single node.
func clusterCommands() []*command.Command {
	entry := func(name string, arity int, f command.Flag, cats command.Category, group, summary, syntax string) *command.Command {
		return &command.Command{
			Name: name, Arity: arity, Flags: f, Categories: cats, Group: group, Summary: summary, Syntax: syntax,
			Since: "1.0.0", Complexity: "O(1)", Reply: "an error",
			Run: func(c *command.Call) { c.Fail(resp.ErrClusterDisabled) },
		}
	}
	const none = "Replies that this server is not a cluster."
	return []*command.Command{
		entry("cluster", -2, command.FlagStale, command.CatSlow, "cluster", none, "subcommand [arg ...]"),
		entry("asking", 1, command.FlagFast|command.FlagConnection, command.CatConnection, "cluster", none, ""),
		entry("readonly", 1, command.FlagLoading|command.FlagStale|command.FlagFast|command.FlagConnection, command.CatConnection, "cluster", none, ""),
		entry("readwrite", 1, command.FlagLoading|command.FlagStale|command.FlagFast|command.FlagConnection, command.CatConnection, "cluster", none, ""),
	}
}

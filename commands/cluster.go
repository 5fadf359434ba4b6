package commands

import "github.com/cellserver/cellserver/resp"

// clusterCommands refuse everything: clients in cluster mode then treat the server as
// the single node that it is.
func clusterCommands() []*Command {
	entry := func(name string, arity int, f Flag, cats Category, group, summary, syntax string) *Command {
		return &Command{
			Name: name, Arity: arity, Flags: f, Categories: cats, Group: group, Summary: summary, Syntax: syntax,
			Since: "1.0.0", Complexity: "O(1)", Reply: "an error",
			Run: func(c *Ctx) { c.Fail(resp.ErrClusterDisabled) },
		}
	}
	const none = "Says that this is no cluster."
	return []*Command{
		entry("cluster", -2, FlagStale, CatSlow, "cluster", none, "subcommand [arg ...]"),
		entry("asking", 1, FlagFast, CatConnection, "cluster", none, ""),
		entry("readonly", 1, FlagLoading|FlagStale|FlagFast, CatConnection, "cluster", none, ""),
		entry("readwrite", 1, FlagLoading|FlagStale|FlagFast, CatConnection, "cluster", none, ""),
	}
}

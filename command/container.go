package command

import "github.com/cellserver/cellserver/resp"

// helpOf returns a new HELP subcommand for container. Its text is generated from the other
// subcommands, so it cannot leave one out.
func helpOf(container *Command) *Command {
	first := container.Sub[0]
	return &Command{
		Name: container.Name + "|help", Arity: 2, Flags: FlagLoading | FlagStale, Categories: first.Categories,
		Group: first.Group, Summary: "Returns helpful text about the subcommands.",
		Since: "1.0.0", Complexity: "O(1)", Reply: "lines of text",
		Run: func(c *Call) { writeHelp(c, container) },
	}
}

// writeHelp replies with an array of status lines, the form of every HELP reply in Redis.
func writeHelp(c *Call, container *Command) {
	c.W.Array(1 + 2*len(container.Sub))
	c.W.Status(upper(container.Name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, sub := range container.Sub {
		usage := upper(sub.Name[len(container.Name)+1:])
		if sub.Syntax != "" {
			usage += " " + sub.Syntax
		}
		c.W.Status(usage)
		c.W.Status("    " + sub.Summary)
	}
}

// SubcommandSyntax returns Redis' error for a wrong number of arguments of a subcommand. It is for
// subcommands that check that number themselves.
func SubcommandSyntax(c *Call) resp.Error {
	return resp.Error("ERR unknown subcommand or wrong number of arguments for '" + string(Echo(c.Args[1], MaxEcho)) +
		"'. Try " + upper(c.Cmd.Parent.Name) + " HELP.")
}

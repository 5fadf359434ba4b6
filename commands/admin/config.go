package admin

import (
	"log/slog"
	"strings"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/resp"
)

func configCommands() []*command.Command {
	const flags = command.FlagAdmin | command.FlagNoScript | command.FlagLoading | command.FlagStale
	get := command.Subcommand("config", "get", -3, flags, "parameter [parameter ...]", "Returns the values of parameters.", "a map of names and values", configGet)
	get.WordWork = 150 // each is compared with hundreds of names
	set := command.Subcommand("config", "set", -4, flags|command.FlagAudit, "parameter value [parameter value ...]", "Sets parameters, all or none.", "OK", configSet)
	set.AuditAttrs = func(c *command.Call) []slog.Attr { return []slog.Attr{slog.String("options", knownOptions(c))} }
	return []*command.Command{{
		Name: "config", Arity: -2, Group: "server", Summary: "A container for server configuration commands.", Since: "1.0.0",
		Sub: []*command.Command{
			get,
			command.Subcommand("config", "resetstat", 2, flags|command.FlagAudit, "", "Resets the statistics that INFO reports.", "OK", configResetStat),
			command.Subcommand("config", "rewrite", 2, flags, "", "Replies with an error: no command writes a file.", "an error",
				func(c *command.Call) { c.Fail("ERR CONFIG REWRITE is not supported: no command writes to a file") }),
			set,
		},
	}}
}

func configGet(c *command.Call) {
	patterns := make([][]byte, 0, len(c.Args)-2)
	asked := make(map[string][]byte) // names as they were written, which Redis repeats
	for _, p := range c.Args[2:] {
		if len(p) > parse.MaxPattern {
			c.Fail(command.ErrPatternTooLong)
			return
		}
		lower := strings.ToLower(string(p))
		patterns, asked[lower] = append(patterns, []byte(lower)), p
	}
	pairs := c.Server.Options.Settings.Get(func(name string) bool {
		for _, p := range patterns {
			if parse.Glob(p, []byte(name)) {
				return true
			}
		}
		return false
	})
	c.W.Map(len(pairs))
	for _, p := range pairs {
		if name, named := asked[p[0]]; named {
			c.W.Bulk(name)
		} else {
			c.W.BulkString(p[0])
		}
		c.W.BulkString(p[1])
	}
}

func configSet(c *command.Call) {
	args := c.Args[2:]
	if len(args)%2 != 0 {
		c.Fail(resp.ErrSyntax)
		return
	}
	pairs := make([][2]string, 0, len(args)/2)
	for ; len(args) > 0; args = args[2:] {
		pairs = append(pairs, [2]string{string(args[0]), string(args[1])})
	}
	if err := c.Server.Options.Settings.Set(pairs); err != "" {
		c.Fail(err)
		return
	}
	c.OK()
}

func configResetStat(c *command.Call) {
	c.Server.BatchEnd(c.Worker) // what this very batch has noted came before
	c.Server.Host.ResetStatistics()
	c.OK()
}

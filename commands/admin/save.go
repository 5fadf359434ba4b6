package admin

import (
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

func saveCommands() []*command.Command {
	const flags = command.FlagAdmin | command.FlagNoScript | command.FlagNoMulti
	entry := func(name string, arity int, f command.Flag, syntax, summary, complexity, reply string, run func(*command.Call)) *command.Command {
		return &command.Command{
			Name: name, Arity: arity, Flags: f, Categories: command.CatDangerous, Group: "server", Summary: summary,
			Syntax: syntax, Since: "1.0.0", Complexity: complexity, Reply: reply, Run: run,
		}
	}
	return []*command.Command{
		entry("save", 1, flags|command.FlagAudit, "", "Writes a snapshot and replies when it is durable. Other clients are served meanwhile.", "O(N)", "OK, or an error", save),
		entry("bgsave", -1, command.FlagAdmin|command.FlagNoScript|command.FlagAudit, "[SCHEDULE]", "Starts to write a snapshot.", "O(1)", "a status", bgsave),
		entry("bgrewriteaof", 1, command.FlagAdmin|command.FlagNoScript|command.FlagAudit, "", "Starts to replace the log by a snapshot.", "O(1)", "a status", bgrewriteaof),
		entry("lastsave", 1, command.FlagLoading|command.FlagStale|command.FlagFast, "", "Returns the time of the last complete snapshot.", "O(1)", "Unix seconds", lastsave),
	}
}

const (
	errNoPersistence resp.Error = "ERR this server has no directory to write to"
	errSaving        resp.Error = "ERR Background save already in progress"
	errRewriting     resp.Error = "ERR Background append only file rewriting already in progress"
)

// persistence returns the server's persistence, or replies with an error and returns nil if there
// is none.
func persistence(c *command.Call) env.Persistence {
	p := c.Server.Options.Persistence
	if p == nil {
		c.Fail(errNoPersistence)
	}
	return p
}

func save(c *command.Call) {
	p := persistence(c)
	if p == nil {
		return
	}
	c.Offload(func(_ env.Store, w *resp.Writer) {
		if err := p.Save(); err != nil {
			w.Error(resp.Error("ERR " + err.Error()))
			return
		}
		w.Status("OK")
	})
}

func bgsave(c *command.Call) {
	if len(c.Args) > 2 || len(c.Args) == 2 && !arg.IsWord(c.Args[1], "SCHEDULE") {
		c.Fail(resp.ErrSyntax)
		return
	}
	if p := persistence(c); p != nil {
		if !p.Start() {
			c.Fail(errSaving)
			return
		}
		c.W.Status("Background saving started")
	}
}

func bgrewriteaof(c *command.Call) {
	if p := persistence(c); p != nil {
		if !p.Start() {
			c.Fail(errRewriting)
			return
		}
		c.W.Status("Background append only file rewriting started")
	}
}

func lastsave(c *command.Call) {
	if p := persistence(c); p != nil {
		c.W.Int(p.LastSave())
	}
}

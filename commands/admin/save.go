package admin

import (
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

func saveCommands() []*command.Command {
	const flags = command.FlagAdmin | command.FlagNoScript | command.FlagNoMulti

	return command.Entries(command.Defaults{
		Categories: command.CatDangerous, Group: "server", Since: "1.0.0", Complexity: "O(1)",
	}, []*command.Command{
		{
			Name: "save", Arity: 1, Flags: flags | command.FlagAudit,
			Summary: "Writes a snapshot and replies when it is durable. Other clients are served meanwhile.", Complexity: "O(N)",
			Reply: "OK, or an error", Run: save,
		},
		{
			Name: "bgsave", Arity: -1, Flags: command.FlagAdmin | command.FlagNoScript | command.FlagAudit,
			Summary: "Starts to write a snapshot.", Syntax: "[SCHEDULE]", Reply: "a status", Run: bgsave,
		},
		{
			Name: "bgrewriteaof", Arity: 1, Flags: command.FlagAdmin | command.FlagNoScript | command.FlagAudit,
			Summary: "Starts to replace the log by a snapshot.", Reply: "a status", Run: bgrewriteaof,
			Disclosure: command.Disclosure{Change: "rewrite"},
		},
		{
			Name: "lastsave", Arity: 1, Flags: command.FlagLoading | command.FlagStale | command.FlagFast,
			Summary: "Returns the time of the last complete snapshot.", Reply: "Unix seconds", Run: lastsave,
		},
	})
}

const (
	errNoPersistence resp.Error = "ERR this server keeps nothing on disk"
	errSaving        resp.Error = "ERR Background save already in progress"
	errRewriting     resp.Error = "ERR Background append only file rewriting already in progress"
)

// persistence returns the server's persistence. If there is none, it replies with an error and
// returns nil.
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

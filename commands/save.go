package commands

import (
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/resp"
)

func saveCommands() []*Command {
	const flags = FlagAdmin | FlagNoScript | FlagNoMulti
	entry := func(name string, arity int, f Flag, syntax, summary, complexity, reply string, run func(*Ctx)) *Command {
		return &Command{
			Name: name, Arity: arity, Flags: f, Categories: CatDangerous, Group: "server", Summary: summary,
			Syntax: syntax, Since: "1.0.0", Complexity: complexity, Reply: reply, Run: run,
		}
	}
	return []*Command{
		entry("save", 1, flags|FlagAudit, "", "Writes a snapshot and answers when it is durable; others are served meanwhile.", "O(N)", "OK, or an error", save),
		entry("bgsave", -1, FlagAdmin|FlagNoScript|FlagAudit, "[SCHEDULE]", "Begins to write a snapshot.", "O(1)", "a status", bgsave),
		entry("bgrewriteaof", 1, FlagAdmin|FlagNoScript|FlagAudit, "", "Begins to replace the log by a snapshot.", "O(1)", "a status", bgrewriteaof),
		entry("lastsave", 1, FlagLoading|FlagStale|FlagFast, "", "Returns when the last snapshot was complete.", "O(1)", "Unix seconds", lastsave),
	}
}

const (
	errNoPersistence resp.Error = "ERR this server has no directory to write to"
	errSaving        resp.Error = "ERR Background save already in progress"
	errRewriting     resp.Error = "ERR Background append only file rewriting already in progress"
)

// StopMode says whether a server that stops writes a snapshot first.
type StopMode uint8

const (
	// StopAsConfigured writes one if there are save points and no log.
	StopAsConfigured StopMode = iota
	// StopSaving writes one.
	StopSaving
	// StopWithoutSaving writes none.
	StopWithoutSaving
)

// persistence returns what keeps the state, or answers that there is nothing.
func (c *Ctx) persistence() Persistence {
	p := c.server.opts.Persistence
	if p == nil {
		c.Fail(errNoPersistence)
	}
	return p
}

func save(c *Ctx) {
	p := c.persistence()
	if p == nil {
		return
	}
	c.Offload(func(_ Store, w *resp.Writer) {
		if err := p.Save(); err != nil {
			w.Error(resp.Error("ERR " + err.Error()))
			return
		}
		w.Status("OK")
	})
}

func bgsave(c *Ctx) {
	if len(c.Args) > 2 || len(c.Args) == 2 && !parse.IsWord(c.Args[1], "SCHEDULE") {
		c.Fail(resp.ErrSyntax)
		return
	}
	if p := c.persistence(); p != nil {
		if !p.Start() {
			c.Fail(errSaving)
			return
		}
		c.W.Status("Background saving started")
	}
}

func bgrewriteaof(c *Ctx) {
	if p := c.persistence(); p != nil {
		if !p.Start() {
			c.Fail(errRewriting)
			return
		}
		c.W.Status("Background append only file rewriting started")
	}
}

func lastsave(c *Ctx) {
	if p := c.persistence(); p != nil {
		c.W.Int(p.LastSave())
	}
}

package policies

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/resp"
)

// defaultChanges is how many changes RL.CHANGES shows.
const defaultChanges = 10

// changes is RL.CHANGES.
func changes(c *command.Call) {
	n, name, err := parseChanges(c.Args[1:])
	if err != "" {
		c.Fail(err)
		return
	}
	if c.Server.Options.Policies == nil {
		c.Fail(errNone)
		return
	}
	outside(c, func() {
		all := c.Server.Options.Policies.Changes(n, name)
		c.W.Array(len(all))
		for i := range all {
			writeChange(c.W, &all[i])
		}
	})
}

func parseChanges(args [][]byte) (n int, name string, err resp.Error) {
	n = defaultChanges
	for len(args) > 0 {
		switch {
		case len(args) > 1 && parse.IsWord(args[0], "COUNT"):
			count, ok := parse.Int(args[1])
			switch {
			case !ok:
				return 0, "", resp.ErrNotInteger
			case count < 1:
				return 0, "", resp.ErrNotPositive
			}
			n = int(min(count, registry.MaxChanges))
		case len(args) > 1 && parse.IsWord(args[0], "POLICY"):
			name = string(args[1])
		default:
			return 0, "", resp.SyntaxNear(args[0])
		}
		args = args[2:]
	}
	return n, name, ""
}

func writeChange(w *resp.Writer, c *registry.Change) {
	w.Map(9)
	number := func(name string, n int64) {
		w.BulkString(name)
		w.Int(n)
	}
	text := func(name, value string) {
		w.BulkString(name)
		w.BulkString(value)
	}
	number("id", c.ID)
	number("time", c.At)
	text("user", c.User)
	text("address", c.Address)
	text("command", c.What)
	text("policy", c.Policy)
	text("pattern", c.Pattern)
	text("before", c.Before)
	text("after", c.After)
}

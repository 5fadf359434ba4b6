package policies

import (
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/resp"
)

// defaultChanges is the number of changes that RL.CHANGES shows without COUNT.
const defaultChanges = 10

// changes is the Run function of RL.CHANGES. It replies with the latest changes of policies, the
// newest first.
func changes(c *command.Call) {
	which, err := parseChanges(c.Args[1:])
	if err != "" {
		c.Fail(err)
		return
	}
	if c.Server.Options.Policies == nil {
		c.Fail(errNone)
		return
	}
	outside(c, func() {
		latest := c.Server.Options.Policies.Latest(which)
		reply := elements.WholeOf(c.W, len(latest))
		c.W.Array(len(latest))
		for is := range latest.All() {
			writeChange(c.W, &is)
			if !reply.More() {
				c.W.Cut(reply.Mark)
				c.Fail(errSmallerCount)
				return
			}
		}
	})
}

const errSmallerCount resp.Error = "ERR the reply is too long, use a smaller COUNT"

// changesSize is the ReplySize function of RL.CHANGES. It returns the approximate maximum size of
// the reply in bytes.
func changesSize(cl *command.Client, _ env.Store, _ *command.Command, args [][]byte) int {
	which, err := parseChanges(args[1:])
	if r := cl.Server.Options.Policies; err == "" && r != nil {
		return int(min(int64(which.Count)*registry.MaxChange, r.Bytes()))
	}
	return 0
}

func parseChanges(args [][]byte) (which registry.Which, err resp.Error) {
	which.Count = defaultChanges
	for len(args) > 0 {
		switch {
		case len(args) > 1 && arg.IsWord(args[0], "COUNT"):
			count, ok := arg.Int(args[1])
			switch {
			case !ok:
				return which, resp.ErrNotInteger
			case count < 1:
				return which, resp.ErrNotPositive
			}
			which.Count = int(min(count, registry.MaxChanges))
		case len(args) > 1 && arg.IsWord(args[0], "POLICY"):
			which.Policy = string(args[1])
		case len(args) > 1 && arg.IsWord(args[0], "PATTERN"):
			which.Pattern = string(args[1])
		default:
			return which, resp.SyntaxNear(args[0])
		}
		args = args[2:]
	}
	return which, ""
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

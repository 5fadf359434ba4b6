package strings

import (
	"math"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/longdouble"
	"github.com/cellserver/cellserver/resp"
)

func counterCommands() []*command.Command {
	entry := func(name string, arity int, syntax, summary, reply string, run func(*command.Call)) *command.Command {
		return &command.Command{
			Name: name, Arity: arity, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast, Keys: command.OneKey, Categories: command.CatString, Group: "string",
			Summary: summary, Syntax: syntax, Since: "1.0.0", Complexity: "O(1)", Reply: reply, Run: run,
		}
	}
	const sum = "the number that the key holds now"
	return []*command.Command{
		entry("incr", 2, "key", "Adds one to the number at a key.", sum, func(c *command.Call) { add(c, 1) }),
		entry("decr", 2, "key", "Subtracts one from the number at a key.", sum, func(c *command.Call) { add(c, -1) }),
		entry("incrby", 3, "key increment", "Adds to the number at a key.", sum, incrby),
		entry("decrby", 3, "key decrement", "Subtracts from the number at a key.", sum, decrby),
		entry("incrbyfloat", 3, "key increment", "Adds a floating-point number to the number at a key.",
			"the number that the key holds now, as a string", incrbyfloat),
		increxCommand(),
	}
}

func add(c *command.Call, by int64) {
	c.ReplyCount(c.Store.AddInt(c.Client.Selected(), c.Args[1], by))
}

func incrby(c *command.Call) {
	by, ok := arg.Int(c.Args[2])
	if !ok {
		c.Fail(resp.ErrNotInteger)
		return
	}
	add(c, by)
}

func decrby(c *command.Call) {
	by, ok := arg.Int(c.Args[2])
	switch {
	case !ok:
		c.Fail(resp.ErrNotInteger)
	case by == math.MinInt64:
		c.Fail("ERR decrement would overflow")
	default:
		add(c, -by)
	}
}

// incrbyfloat implements INCRBYFLOAT. As in Redis it checks the type of the key before the
// increment.
func incrbyfloat(c *command.Call) {
	var text []byte
	err := c.Store.UpdateString(c.Client.Selected(), c.Args[1], func(old []byte, found bool, expiry limit.Instant) ([]byte, limit.Instant, error) {
		if !found {
			old = zeroText
		}
		var err error
		text, err = longdouble.AddTexts(old, c.Args[2])
		return text, expiry, err
	})
	if err != nil {
		c.Fail(command.FloatError(err))
		return
	}
	c.W.Bulk(text)
}

package strings

import (
	"math"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/longdouble"
	"github.com/cellserver/cellserver/resp"
)

func counterCommands() []*command.Command {
	const sum = "the number that the key holds now"
	return command.Entries(command.Defaults{
		Keys: command.OneKey, Categories: command.CatString, Group: "string", Since: "1.0.0", Complexity: "O(1)",
	}, []*command.Command{
		{
			Name: "incr", Arity: 2, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast,
			Summary: "Adds one to the number at a key.", Syntax: "key", Reply: sum, RunOn: command.On(func(c storeCall) { add(c, 1) }),
		},
		{
			Name: "decr", Arity: 2, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast,
			Summary: "Subtracts one from the number at a key.", Syntax: "key", Reply: sum, RunOn: command.On(func(c storeCall) { add(c, -1) }),
		},
		{
			Name: "incrby", Arity: 3, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast,
			Summary: "Adds to the number at a key.", Syntax: "key increment", Reply: sum, RunOn: command.On(incrby),
		},
		{
			Name: "decrby", Arity: 3, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast,
			Summary: "Subtracts from the number at a key.", Syntax: "key decrement", Reply: sum, RunOn: command.On(decrby),
		},
		{
			Name: "incrbyfloat", Arity: 3, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast,
			Summary: "Adds a floating-point number to the number at a key.", Syntax: "key increment",
			Reply: "the number that the key holds now, as a string", RunOn: command.On(incrbyfloat),
		},
		increxCommand(),
	})
}

func add(c storeCall, by int64) {
	c.ReplyCount(c.Store.AddInt(c.Client.Selected(), c.Args[1], by))
}

func incrby(c storeCall) {
	by, ok := arg.Int(c.Args[2])
	if !ok {
		c.Fail(resp.ErrNotInteger)
		return
	}
	add(c, by)
}

func decrby(c storeCall) {
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

// incrbyfloat is the Run function of INCRBYFLOAT. As in Redis it reports a wrong type of the key
// before a wrong increment.
func incrbyfloat(c storeCall) {
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

package monitor

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
)

// calm are the flags of commands for operators that may also run while the server is loading or is
// a replica without a link to its primary.
const calm = command.FlagAdmin | command.FlagLoading | command.FlagStale

func slowlogCommand() *command.Command {
	return &command.Command{
		Name: "slowlog", Arity: -2, Group: "server", Summary: "A container for slow log commands.", Since: "1.0.0",
		Sub: command.Entries(command.Defaults{Group: "server", Since: "1.0.0", Complexity: "O(1)"}, []*command.Command{
			{
				Name: "slowlog|get", Arity: -2, Flags: calm,
				Summary: "Returns the newest calls that took long, 10 unless it is told otherwise, all for -1.", Syntax: "[count]",
				Reply: "an array of entries: id, Unix time, microseconds, arguments, address and name of the client", Run: slowlogGet,
			},
			{
				Name: "slowlog|len", Arity: 2, Flags: calm,
				Summary: "Returns the number of entries.", Reply: "an integer",
				Run: func(c *command.Call) { c.W.Int(int64(c.Server.Slow.Len())) },
			},
			{
				Name: "slowlog|reset", Arity: 2, Flags: calm,
				Summary: "Removes all entries.", Reply: "OK",
				Run: func(c *command.Call) {
					c.Server.Slow.Reset()
					c.OK()
				},
			},
		}),
	}
}

// slowlogCount is the number of entries that SLOWLOG GET shows by default.
const slowlogCount = 10

func slowlogGet(c *command.Call) {
	if len(c.Args) > 3 {
		c.Fail(command.SubcommandSyntax(c))
		return
	}
	most := int64(slowlogCount)
	if len(c.Args) == 3 {
		var ok bool
		if most, ok = arg.Int(c.Args[2]); !ok || most < -1 {
			c.Fail("ERR count should be greater than or equal to -1")
			return
		}
		if most == -1 {
			most = math.MaxInt32
		}
	}
	entries := c.Server.Slow.Newest(int(min(most, math.MaxInt32)))
	c.W.Array(len(entries))
	for _, e := range entries {
		c.W.Array(6)
		c.W.Int(e.ID)
		c.W.Int(e.At / 1000)
		c.W.Int(int64(e.Took / time.Microsecond))
		c.W.Array(len(e.Args))
		for _, a := range e.Args {
			c.W.BulkString(a)
		}
		c.W.BulkString(e.Addr)
		c.W.BulkString(e.Name)
	}
}

package limiters

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
)

func throttleCommands() []*command.Command {
	throttle := command.Command{
		Name:       "cl.throttle",
		Arity:      -1, // as a module command: redis-cell counts its arguments itself
		Flags:      command.FlagWrite | command.FlagModule,
		Keys:       command.OneKey,
		Group:      "module",
		Summary:    "Checks a GCRA limit and takes quantity units if they fit.",
		Syntax:     "key max_burst count period [quantity]",
		Since:      "1.0.0",
		Complexity: "O(1)",
		Reply:      "five integers: limited, limit, remaining, retry after, reset after (seconds)",
		Run:        throttle,
	}
	alias := throttle
	alias.Name = "rl.throttle"
	alias.Summary = "Does the same as CL.THROTTLE."
	return []*command.Command{&throttle, &alias}
}

// throttle is CL.THROTTLE: parse, decide, reply.
func throttle(c *command.Call) {
	call := &command.Scratch[scratch](c).throttle
	if err := parseThrottle(c.Args[1:], call); err != "" {
		c.Fail(err)
		return
	}
	d, err := c.Store.Throttle(c.Client.Selected(), c.Args[1], &call.quota, call.quantity)
	if err != nil {
		c.Fail(command.StoreError(err))
		return
	}
	decided(c, c.Args[1], &d)
	c.W.FiveInts(d.Refused, d.Limit, d.Remaining, gcra.RetrySeconds(d), limit.CellSeconds(d.ResetAfter))
}

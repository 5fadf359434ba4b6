package limiters

import (
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

func throttleCommands() []*command.Command {
	entry := command.Command{
		Name:       "cl.throttle",
		Arity:      -1, // CL.THROTTLE looks like the command of a module: redis-cell counts its arguments itself
		Flags:      command.FlagWrite | command.FlagModule | command.FlagDecides,
		Keys:       command.OneKey,
		Group:      "module",
		Summary:    "Checks a GCRA limit and takes quantity units if they fit.",
		Syntax:     "key max_burst count period [quantity]",
		Since:      "1.0.0",
		Complexity: "O(1)",
		Reply:      "five integers: limited, limit, remaining, retry after, reset after (seconds)",
		Run:        throttle,
		Parse:      askThrottle,
		Answer:     answerThrottle,
	}
	alias := entry
	alias.Name = "rl.throttle"
	alias.Summary = "Does the same as CL.THROTTLE."
	return []*command.Command{&entry, &alias}
}

// throttle is the Run function of CL.THROTTLE. It does the same as the function that the command
// table would build from Parse and Answer, with fewer function calls.
func throttle(c *command.Call) {
	if err := askThrottle(c); err != "" {
		c.Fail(err)
		return
	}
	a := c.OwnAsk()
	if c.Store.Decide(a); a.Err != nil {
		c.Fail(command.StoreError(a.Err))
		return
	}
	answerThrottle(c, a)
}

func askThrottle(c *command.Call) resp.Error {
	if len(c.Args) < 2 {
		return resp.ErrCellUsage
	}
	a := c.NewAsk(decide.Cell, c.Args[1])
	return clause.Throttle(c.Args[1:], &a.Quota, &a.Quantity)
}

// answerThrottle counts the decision on a and replies with its five integers. It rounds times as
// redis-cell does.
func answerThrottle(c *command.Call, a *decide.Ask) {
	decided(c, a)
	d := &a.Decision
	c.W.FiveInts(d.Refused, d.Limit, d.Remaining, gcra.RetrySeconds(*d), limit.CellSeconds(d.ResetAfter))
}

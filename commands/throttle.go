package commands

import (
	"errors"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

func throttleCommands() []*Command {
	throttle := Command{
		Name:       "cl.throttle",
		Arity:      -1, // as a module command: redis-cell counts its arguments itself
		Flags:      FlagWrite | FlagModule,
		Keys:       oneKey,
		Group:      "module",
		Summary:    "Asks whether quantity cells may pass under a GCRA limit, and charges them.",
		Syntax:     "key max_burst count period [quantity]",
		Since:      "1.0.0",
		Complexity: "O(1)",
		Reply:      "five integers: limited, limit, remaining, retry after, reset after (seconds)",
		Run:        throttle,
	}
	alias := throttle
	alias.Name = "rl.throttle"
	alias.Summary = "Is CL.THROTTLE under a name that says what it does."
	return []*Command{&throttle, &alias}
}

// throttle is CL.THROTTLE: parse, decide, reply.
func throttle(c *Ctx) {
	call := &laneOf(c.Worker).throttle
	if err := parseThrottle(c.Args[1:], call); err != "" {
		c.Fail(err)
		return
	}
	d, err := c.Store.Throttle(c.Client.selected(), c.Args[1], &call.quota, call.quantity)
	if err != nil {
		c.Fail(storeError(err))
		return
	}
	c.decided(c.Args[1], &d)
	c.W.FiveInts(d.Refused, d.Limit, d.Remaining, gcra.RetrySeconds(d), limit.CellSeconds(d.ResetAfter))
}

// storeError is the reply to what the store could not do.
func storeError(err error) resp.Error {
	for _, known := range storeErrors {
		if errors.Is(err, known.err) {
			return known.text
		}
	}
	return resp.ErrInternal
}

var storeErrors = []struct {
	err  error
	text resp.Error
}{
	{limit.ErrWrongType, resp.ErrWrongType},
	{limit.ErrNotInteger, resp.ErrNotInteger},
	{limit.ErrOverflow, resp.ErrOverflow},
	{limit.ErrRateTooHigh, resp.ErrRateTooHigh},
	{limit.ErrFull, resp.ErrOOM},
	{limit.ErrSumOverflow, resp.ErrSumOverflow},
	{limit.ErrTooLong, resp.ErrStringTooLong},
	{limit.ErrNotKept, errNotKept},
	{limit.ErrTooManyMembers, resp.ErrTooManyLeases},
}

package extension

import (
	"time"

	"example.com/extension/backoff"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

func tryCommand() *command.Command {
	return &command.Command{
		Name: "backoff.try", Arity: 4, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast,
		Keys: command.OneKey, Categories: command.CatRateLimit, Group: "example",
		Summary: "Admits a call, and doubles the wait before the next.", Syntax: "key first longest",
		Since: "1.0.0", Complexity: "O(1)", Reply: "five integers as of CL.THROTTLE", RunOn: command.On(try),
	}
}

// try implements BACKOFF.TRY.
func try(c storeCall) {
	call, err := parseTry(c.Args[2:])
	if err != "" {
		c.Fail(err)
		return
	}

	var d limit.Decision
	failed := c.Store.UpdateString(c.Client.Selected(), c.Args[1],
		func(state []byte, _ bool, _ limit.Instant) (next []byte, until limit.Instant, err error) {
			d, next, until, err = backoff.Decide(state, c.Store.Now(), call)
			return next, until, err
		})

	if failed != nil {
		c.Fail(command.StoreError(failed))
		return
	}
	c.W.FiveInts(d.Refused, d.Limit, d.Remaining, limit.SecondsUp(d.RetryAfter), limit.SecondsUp(d.ResetAfter))
}

const errWaits resp.Error = "ERR the waits must be whole seconds, the first at least 1 and at most the longest"

// parseTry parses the arguments `first longest`, which are in seconds. It returns an error unless
// first is at least 1 and longest at least first.
func parseTry(args [][]byte) (call backoff.Call, err resp.Error) {
	first, ok1 := arg.Int(args[0])
	longest, ok2 := arg.Int(args[1])
	if !ok1 || !ok2 || first < 1 || longest < first {
		return call, errWaits
	}
	call.First = time.Duration(limit.SatMul(first, int64(time.Second)))
	call.Longest = time.Duration(limit.SatMul(longest, int64(time.Second)))
	return call, ""
}

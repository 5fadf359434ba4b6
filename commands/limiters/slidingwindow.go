package limiters

import (
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
)

func slidingWindowCommands() []*command.Command {
	return []*command.Command{{
		Name: "sw.allow", Arity: -4, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast | command.FlagDecides, Keys: command.OneKey,
		Categories: command.CatRateLimit, Group: "ratelimit",
		Summary: "Checks a limit per window and takes quantity units if they fit.",
		Syntax: "key limit <window | DAY | WEEK | MONTH | YEAR> [quantity] [COUNTER | FIXED | LOG | <BUCKETS slots [EVEN]>] " +
			"[ANCHOR <FIRST | KEY | unix-time>] [ZONE zone] [FROM start] " +
			"[PENALIZE] [KEEP <units | share%>] [MS] [PEEK | PARTIAL | FORCE] [BLOCK timeout] [ID token | RESERVE id ttl]",
		Since: "1.0.0", Complexity: "O(1), amortised for LOG; O(slots) for BUCKETS",
		Reply: fiveReply, Run: allow, Parse: askAllow, Answer: answerFive, Waits: allowWaits,
	}}
}

// fiveReply describes the reply of the commands that reply with a decision, except CL.THROTTLE,
// which rounds times as redis-cell does.
const fiveReply = "five integers: limited, limit, remaining, retry after, reset after (seconds, milliseconds with MS)"

func askAllow(c *command.Call) resp.Error {
	a := c.NewAsk(decide.Window, c.Args[1])
	var o clause.CallOptions
	err := clause.SlidingWindow(c.Args[1:], c.Server.Limits().LogMaxEntries, &a.Window, &o)
	if a.Millis = a.Window.Millis; err == "" {
		err = complete(c, a, &o, a.Window.Limit)
	}
	return c.WithUsage(err)
}

// allow is the Run function of SW.ALLOW, which may wait for room.
func allow(c *command.Call) {
	if err := askAllow(c); err != "" {
		c.Fail(err)
		return
	}
	a := c.OwnAsk()
	if a.Window.Block && a.Window.Quantity > 0 && c.MayWait() {
		waitFor(c, a, a.Window.Timeout, counted{})
		return
	}
	if c.Store.Decide(a); a.Err != nil {
		c.Fail(command.StoreError(a.Err))
		return
	}
	answerFive(c, a)
}

// allowWaits is the Waits function of SW.ALLOW. It reports whether the arguments are valid, contain
// BLOCK and ask for a quantity above 0.
func allowWaits(s *command.Server, args [][]byte) bool {
	if !saysBlock(args) {
		return false
	}
	var call slidingwindow.Call
	return clause.SlidingWindow(args[1:], s.Limits().LogMaxEntries, &call, nil) == "" && call.Block && call.Quantity > 0
}

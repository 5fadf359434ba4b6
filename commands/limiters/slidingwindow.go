package limiters

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
)

func slidingWindowCommands() []*command.Command {
	return []*command.Command{{
		Name: "sw.allow", Arity: -4, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast, Keys: command.OneKey,
		Categories: command.CatRateLimit, Group: "ratelimit",
		Summary: "Checks a limit per window and takes quantity units if they fit.",
		Syntax: "key limit window [quantity] [COUNTER | FIXED | LOG | <BUCKETS slots [EVEN]>] [ANCHOR <FIRST | KEY | unix-time>] " +
			"[PENALIZE] [MS] [PEEK | PARTIAL | FORCE] [BLOCK timeout]",
		Since: "1.0.0", Complexity: "O(1), amortised for LOG; O(slots) for BUCKETS",
		Reply: fiveReply, Run: allow,
	}}
}

// fiveReply describes the answer of the limiters with rounded-up times.
const fiveReply = "five integers: limited, limit, remaining, retry after, reset after (seconds, milliseconds with MS)"

// allow is SW.ALLOW.
func allow(c *command.Call) {
	call := &command.Scratch[scratch](c).window
	if err := parseSlidingWindow(c.Args[1:], c.Server.Limits().LogMaxEntries, call); err != "" {
		c.Fail(err)
		return
	}
	if call.Block && call.Quantity > 0 && c.MayWait() {
		waitFor(c, c.Args[1], call.Timeout, windowWait(*call, c.Client.Selected(), c.Args[1]))
		return
	}
	d, err := c.Store.Allow(c.Client.Selected(), c.Args[1], call)
	replyDecision(c, d, err, call.Millis)
}

// windowWait is a waiting SW.ALLOW, with copies of what it needs.
func windowWait(call slidingwindow.Call, db int, key []byte) *wait {
	key = append([]byte(nil), key...)
	peek := call
	peek.Charge, peek.Block = slidingwindow.Peek, false
	return &wait{
		millis: call.Millis,
		try:    func(st command.Store) (limit.Decision, error) { return st.Allow(db, key, &call) },
		look:   func(st command.Store) (limit.Decision, error) { return st.Allow(db, key, &peek) },
	}
}

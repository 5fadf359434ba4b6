package limiters

import (
	"bytes"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/limit"
)

func concurrencyCommands() []*command.Command {
	const log = "O(log N) of the members"
	return []*command.Command{
		{
			Name: "cc.acquire", Arity: -5, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast, Keys: command.OneKey,
			Categories: command.CatRateLimit, Group: "ratelimit",
			Summary: "Takes one of limit places with a lease, or refreshes the member's lease.",
			Syntax:  "key limit lease member [MS] [PEEK] [BLOCK timeout]",
			Since:   "1.0.0", Complexity: log, Reply: fiveReply, Run: leaseAcquire,
		},
		{
			Name: "cc.release", Arity: 3, Flags: command.FlagWrite | command.FlagFast, Keys: command.OneKey,
			Categories: command.CatRateLimit, Group: "ratelimit",
			Summary: "Gives a member's place back.", Syntax: "key member",
			Since: "1.0.0", Complexity: log, Reply: "1 if the member held one, 0 if not", Run: leaseRelease,
		},
		{
			Name: "cc.renew", Arity: -4, Flags: command.FlagWrite | command.FlagFast, Keys: command.OneKey,
			Categories: command.CatRateLimit, Group: "ratelimit",
			Summary: "Sets a new lease for a member that holds a place.", Syntax: "key member lease [MS]",
			Since: "1.0.0", Complexity: log, Reply: "1 if the member held one, 0 if not", Run: leaseRenew,
		},
	}
}

func leaseAcquire(c *command.Call) {
	call := &command.Scratch[scratch](c).lease
	if err := parseLeaseAcquire(c.Args[1:], c.Server.Limits().MaxMembers, call); err != "" {
		c.Fail(err)
		return
	}
	if call.Block && c.MayWait() {
		waitFor(c, c.Args[1], call.Timeout, leaseWait(*call, c.Client.Selected(), c.Args[1]))
		return
	}
	d, err := c.Store.Lease(c.Client.Selected(), c.Args[1], call)
	replyDecision(c, d, err, call.Millis)
}

// leaseWait is a waiting CC.ACQUIRE, with copies of what it needs.
func leaseWait(call concurrency.Call, db int, key []byte) *wait {
	key, call.Member = bytes.Clone(key), bytes.Clone(call.Member)
	peek := call
	peek.Peek, peek.Block = true, false
	return &wait{
		millis: call.Millis,
		try:    func(st command.Store) (limit.Decision, error) { return st.Lease(db, key, &call) },
		look:   func(st command.Store) (limit.Decision, error) { return st.Lease(db, key, &peek) },
	}
}

func leaseRelease(c *command.Call) {
	if err := parseLeaseRelease(c.Args[1:], &command.Scratch[scratch](c).lease); err != "" {
		c.Fail(err)
		return
	}
	leaseChange(c)
}

func leaseRenew(c *command.Call) {
	if err := parseLeaseRenew(c.Args[1:], &command.Scratch[scratch](c).lease); err != "" {
		c.Fail(err)
		return
	}
	leaseChange(c)
}

// leaseChange replies whether the member held a lease that could be changed.
func leaseChange(c *command.Call) {
	d, err := c.Store.Lease(c.Client.Selected(), c.Args[1], &command.Scratch[scratch](c).lease)
	switch {
	case err != nil:
		c.Fail(command.StoreError(err))
	case d.Refused == 0:
		c.W.Int(1)
	default:
		c.W.Int(0)
	}
}

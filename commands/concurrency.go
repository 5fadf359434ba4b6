package commands

import (
	"bytes"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/limit"
)

func concurrencyCommands() []*Command {
	const log = "O(log N) of the members"
	return []*Command{
		{
			Name: "cc.acquire", Arity: -5, Flags: FlagWrite | FlagDenyOOM | FlagFast, Keys: oneKey,
			Categories: CatRateLimit, Group: "ratelimit",
			Summary: "Takes one of limit places under a lease, or refreshes the member's own.",
			Syntax:  "key limit lease member [MS] [PEEK] [BLOCK timeout]",
			Since:   "1.0.0", Complexity: log, Reply: fiveReply, Run: leaseAcquire,
		},
		{
			Name: "cc.release", Arity: 3, Flags: FlagWrite | FlagFast, Keys: oneKey,
			Categories: CatRateLimit, Group: "ratelimit",
			Summary: "Gives a member's place back.", Syntax: "key member",
			Since: "1.0.0", Complexity: log, Reply: "1 if the member held one, 0 if not", Run: leaseRelease,
		},
		{
			Name: "cc.renew", Arity: -4, Flags: FlagWrite | FlagFast, Keys: oneKey,
			Categories: CatRateLimit, Group: "ratelimit",
			Summary: "Sets a new lease for a member that holds a place.", Syntax: "key member lease [MS]",
			Since: "1.0.0", Complexity: log, Reply: "1 if the member held one, 0 if not", Run: leaseRenew,
		},
	}
}

func leaseAcquire(c *Ctx) {
	call := &laneOf(c.Worker).lease
	if err := parseLeaseAcquire(c.Args[1:], c.server.Limits().MaxMembers, call); err != "" {
		c.Fail(err)
		return
	}
	if call.Block && c.mayWait() {
		c.waitFor(c.Args[1], call.Timeout, leaseWait(*call, c.Client.selected(), c.Args[1]))
		return
	}
	d, err := c.Store.Lease(c.Client.selected(), c.Args[1], call)
	c.replyDecision(d, err, call.Millis)
}

// leaseWait is a waiting CC.ACQUIRE, with copies of what it needs.
func leaseWait(call concurrency.Call, db int, key []byte) *wait {
	key, call.Member = bytes.Clone(key), bytes.Clone(call.Member)
	peek := call
	peek.Peek, peek.Block = true, false
	return &wait{
		millis: call.Millis,
		try:    func(st Store) (limit.Decision, error) { return st.Lease(db, key, &call) },
		look:   func(st Store) (limit.Decision, error) { return st.Lease(db, key, &peek) },
	}
}

func leaseRelease(c *Ctx) {
	if err := parseLeaseRelease(c.Args[1:], &laneOf(c.Worker).lease); err != "" {
		c.Fail(err)
		return
	}
	c.leaseChange()
}

func leaseRenew(c *Ctx) {
	if err := parseLeaseRenew(c.Args[1:], &laneOf(c.Worker).lease); err != "" {
		c.Fail(err)
		return
	}
	c.leaseChange()
}

// leaseChange replies whether the member held a lease that could be changed.
func (c *Ctx) leaseChange() {
	d, err := c.Store.Lease(c.Client.selected(), c.Args[1], &laneOf(c.Worker).lease)
	switch {
	case err != nil:
		c.Fail(storeError(err))
	case d.Refused == 0:
		c.W.Int(1)
	default:
		c.W.Int(0)
	}
}

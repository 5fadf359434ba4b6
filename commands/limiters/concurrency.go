package limiters

import (
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/resp"
)

func concurrencyCommands() []*command.Command {
	const log = "O(log N) of the members"
	return command.Entries(command.Defaults{
		Keys: command.OneKey, Categories: command.CatRateLimit, Group: "ratelimit", Since: "1.0.0", Complexity: log,
	}, []*command.Command{
		{
			Name: "cc.acquire", Arity: -5, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast | command.FlagDecides,
			Summary: "Takes one of limit places with a lease, or refreshes the member's lease.",
			Syntax:  "key limit lease member [MS] [PEEK] [BLOCK timeout]", Reply: fiveReply, Run: leaseAcquire, Parse: askLease,
			Answer: answerFive, Waits: leaseWaits,
		},
		{
			Name: "cc.release", Arity: 3, Flags: command.FlagWrite | command.FlagFast,
			Summary: "Gives a member's place back.", Syntax: "key member", Reply: "1 if the member held one, 0 if not", Parse: askRelease,
			Answer: answerLease,
		},
		{
			Name: "cc.renew", Arity: -4, Flags: command.FlagWrite | command.FlagFast,
			Summary: "Sets a new lease for a member that holds a place.", Syntax: "key member lease [MS]",
			Reply: "1 if the member held one, 0 if not", Parse: askRenew, Answer: answerLease,
		},
	})
}

func askLease(c *command.Call) resp.Error {
	a := c.NewAsk(decide.Lease, c.Args[1])
	err := clause.LeaseAcquire(c.Args[1:], c.Server.Limits().MaxMembers, &a.Lease)
	a.Millis = a.Lease.Millis
	return c.WithUsage(err)
}

// leaseAcquire is the Run function of CC.ACQUIRE, which may wait for a place.
func leaseAcquire(c *command.Call) {
	if err := askLease(c); err != "" {
		c.Fail(err)
		return
	}
	a := c.OwnAsk()
	if a.Lease.Block && c.MayWait() {
		waitFor(c, a, a.Lease.Timeout, nil)
		return
	}
	if c.Store.Decide(a); a.Err != nil {
		c.Fail(command.StoreError(a.Err))
		return
	}
	answerFive(c, a)
}

// leaseWaits is the Waits function of CC.ACQUIRE. It reports whether the arguments are valid and
// contain BLOCK.
func leaseWaits(s *command.Server, args [][]byte) bool {
	if !saysBlock(args) {
		return false
	}
	var call concurrency.Call
	return clause.LeaseAcquire(args[1:], s.Limits().MaxMembers, &call) == "" && call.Block
}

func askRelease(c *command.Call) resp.Error {
	return clause.LeaseRelease(c.Args[1:], &c.NewAsk(decide.Lease, c.Args[1]).Lease)
}

func askRenew(c *command.Call) resp.Error {
	return c.WithUsage(clause.LeaseRenew(c.Args[1:], &c.NewAsk(decide.Lease, c.Args[1]).Lease))
}

// answerLease replies to CC.RELEASE and CC.RENEW: with 1 if the member held a lease, and 0 if not.
func answerLease(c *command.Call, a *decide.Ask) {
	if a.Decision.Refused == 0 {
		c.W.Int(1)
	} else {
		c.W.Int(0)
	}
}

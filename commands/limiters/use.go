package limiters

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

func useCommands() []*command.Command {
	return []*command.Command{explainCommand(), resetCommand(), {
		Name: "rl.use", Arity: -3,
		Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast | command.FlagMovableKeys | command.FlagDecides,
		Keys:  command.KeySpec{Derived: &policyKey}, Categories: command.CatRateLimit, Group: "ratelimit",
		Summary: "Charges the limits that a policy has for a key, all of them or none.",
		Syntax: "policy key [quantity] [PEEK | PARTIAL | FORCE | <WAIT max> | <BLOCK timeout>] [MEMBER member] [MS] " +
			"[WITHDETAILS]",
		Since: "1.0.0", Complexity: "O(N) of the clauses",
		Reply: fiveReply + ", of the binding clause; with WITHDETAILS also those of every clause", Run: use, Waits: useWaits, Writes: useWrites,
	}}
}

// use is the Run function of RL.USE.
func use(c *command.Call) {
	u := &command.Scratch[scratch](c).use
	if err := u.parse(c.Args[1:]); err != "" {
		c.Fail(c.WithUsage(err))
		return
	}
	if u.find(c); u.policy == nil {
		c.Fail(command.NoPolicy(u.name))
		return
	}
	if u.blocks() {
		u.replyBlocked(c)
		return
	}
	if err := u.check(); err != "" {
		c.Fail(err)
		return
	}
	a, err := u.ask(c, u.limits, false)
	if err != "" {
		c.Fail(err)
		return
	}
	if u.waits(c) && a.Family != decide.Bucket {
		waitFor(c, a, u.wait)
		return
	}
	if c.Store.Decide(a); a.Err != nil {
		c.Fail(command.StoreError(a.Err))
		return
	}
	if a.Family == decide.Bucket && grantsLater(a) {
		serveOut(c, a)
		return
	}
	u.answer(c, a)
}

// useWrites is the Writes function of RL.USE: a call that only looks changes nothing.
func useWrites(_ *command.Call, _ *command.Command, args [][]byte) bool {
	var u useScratch
	return u.parse(args[1:]) != "" || !u.looks()
}

// useWaits is the Waits function of RL.USE. It reports whether the arguments contain BLOCK.
func useWaits(_ *command.Server, args [][]byte) bool { return saysBlock(args) }

// answer counts the decision on a and replies with it. Then it decides the same call under the
// policy's candidate, if there is one.
func (u *useScratch) answer(c *command.Call, a *decide.Ask) {
	if a.Family != decide.Several && !a.WithDetails && !u.lenient() && u.policy.Candidate == nil { // the common case
		u.answered(a.Decision.Refused != 0)
		answerFive(c, a)
		return
	}
	d := decisionOf(a)
	denied := d.Refused != 0
	if u.lenient() {
		u.allow(a, &d)
		u.count(denied)
	}
	noteDecided(c, a, &d)
	writeUse(c.W, a, &d)
	if u.hasCandidate() && !u.looks() && u.mode != useBlock {
		u.try(c, denied)
	}
}

// allow changes d, the decision on a as a whole, and the details of a into those of a call that
// passes.
func (u *useScratch) allow(a *decide.Ask, d *limit.Decision) {
	d.Refused, d.RetryAfter = 0, limit.NoRetry
	if a.Family == decide.Several {
		for i := range a.Details {
			a.Details[i].Refused, a.Details[i].RetryAfter = 0, limit.NoRetry
		}
	}
}

// count counts a call that passes regardless of the decision, because of an exemption or a shadow
// policy. denied says whether the call would have been denied otherwise.
func (u *useScratch) count(denied bool) {
	counts := u.policy.Counts
	switch {
	case u.looks():
	case u.applied.Exempt != nil:
		counts.Exempted.Add(1)
		if denied {
			counts.ExemptedDenied.Add(1)
		}
	case denied:
		counts.ShadowDenied.Add(1)
	}
}

// replyBlocked replies that the call and each of its clauses are denied until the block ends. It
// decides and charges nothing.
func (u *useScratch) replyBlocked(c *command.Call) {
	m := &command.Scratch[scratch](c).multi
	m.grow(len(u.limits.Clauses))
	left := u.blockedFor(c.Store.Now())
	for i := range m.details {
		m.details[i] = limit.Decision{Refused: 1, Limit: u.limitOf(i), RetryAfter: left, ResetAfter: left}
	}
	if !u.looks() {
		u.policy.Counts.Blocked.Add(1)
	}
	a := c.NewAsk(decide.Several, nil)
	a.Details, a.Millis, a.WithDetails = m.details, u.millis, u.withDetails
	c.Denied++
	u.answered(true)
	command.Scratch[scratch](c).note(c, a, u.stateKey(c, 0, false), &m.details[0])
	writeUse(c.W, a, &m.details[0])
}

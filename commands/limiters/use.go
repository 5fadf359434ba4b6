package limiters

import (
	"errors"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
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

// policyKey says how the derived key of a call is made from the name of a policy and the key after
// it: it is the state key of the first clause.
var policyKey = command.DerivedKey{
	Append: func(dst []byte, args [][]byte) []byte { return policy.AppendStateKey(dst, args[1], args[2], 1, false) },
	Last:   2,
	Extra:  16, // at most "#try:", "#" as the mark, and "#" with the number of the clause
}

// namesPolicy reports whether the first two arguments of the running command are a policy and a
// key.
func namesPolicy(c *command.Call) bool { return c.Cmd.Keys.Derived == &policyKey }

// use is the Run function of RL.USE.
func use(c *command.Call) {
	u, err := parseUse(c.Args[1:])
	if err != "" {
		c.Fail(c.WithUsage(err))
		return
	}
	u.of(c)
	d := command.Scratch[scratch](c).Decider
	l, fault := d.Find(u.Call)
	if fault != nil {
		c.Fail(callError(&u.Call, fault))
		return
	}
	a := c.NewAsk(0, nil)
	if l.Parks() && !l.Blocked() {
		u.wait(c, d, &l, a)
		return
	}
	answer, fault := d.Decide(c.Store, &l, a)
	if fault != nil {
		c.Fail(callError(&u.Call, fault))
		return
	}
	c.Denied += min(1, answer.Decision.Refused)
	u.reply(c.W, &answer)
}

// of sets what the running command has besides its arguments.
func (u *useCall) of(c *command.Call) {
	u.DB, u.StateKey, u.MayWait, u.From = c.Client.Selected(), c.DerivedKey, c.MayWait(), caller{c}
}

// wait decides a call that waits if there is no room for it. It fills in a, a new ask.
func (u *useCall) wait(c *command.Call, d *ratelimit.Decider, l *ratelimit.Lookup, a *decide.Ask) {
	if err := d.Ask(l, a); err != nil {
		c.Fail(callError(&u.Call, err))
		return
	}
	a.Millis, a.WithDetails = u.millis, u.withDetails
	if a.Family != decide.Bucket {
		waitFor(c, a, l.MaxWait, l.Counts())
		return
	}
	if c.Store.Decide(a); a.Err != nil {
		c.Fail(command.StoreError(a.Err))
		return
	}
	if grantsLater(a) {
		serveOut(c, a, l.Counts())
		return
	}
	answer := d.Answer(l, a)
	c.Denied += min(1, answer.Decision.Refused)
	u.reply(c.W, &answer)
}

// reply writes the answer to the call.
func (u *useCall) reply(w *resp.Writer, answer *ratelimit.Answer) {
	if !u.withDetails {
		writeDecision(w, &answer.Decision, u.millis)
		return
	}
	writeDetails(w, &answer.Decision, answer.Details, u.millis)
}

// callError returns the reply to a call under a policy that has ended with err.
func callError(call *ratelimit.Call, err error) resp.Error {
	switch {
	case errors.Is(err, ratelimit.ErrNoPolicy):
		return command.NoPolicy(call.Policy)
	case errors.Is(err, ratelimit.ErrNoMember), errors.Is(err, ratelimit.ErrForce), errors.Is(err, ratelimit.ErrPartial):
		return resp.Error("ERR " + err.Error())
	case errors.Is(err, ratelimit.ErrDebt):
		return resp.ErrOverflow
	case errors.Is(err, slidingwindow.ErrLogTooLong):
		return resp.ErrLogTooLong
	case errors.Is(err, concurrency.ErrMemberTooLong):
		return resp.ErrMemberTooLong
	}
	return command.StoreError(err)
}

// useWrites is the Writes function of RL.USE: a call that only looks changes nothing.
func useWrites(_ *command.Call, _ *command.Command, args [][]byte) bool {
	u, err := parseUse(args[1:])
	return err != "" || !u.Looks()
}

// useWaits is the Waits function of RL.USE. It reports whether the arguments contain BLOCK.
func useWaits(_ *command.Server, args [][]byte) bool { return saysBlock(args) }

package limiters

import (
	"errors"
	"fmt"

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
		Keys:  command.KeySpec{Derived: &policyKeys}, Categories: command.CatRateLimit, Group: "ratelimit",
		Summary: "Charges the limits that a policy has for a key, all of them or none, or those of several policies.",
		Syntax: "policy key [quantity [quantity ...]] [<AND | ANY> policy key [quantity [quantity ...]] ...] " +
			"[PEEK | PARTIAL | FORCE | <WAIT max> | <BLOCK timeout>] [KEEP <units | share%> | CLASS class] [LIMIT max window] [MEMBER member] [ID token | RESERVE id ttl] [MS] [WITHDETAILS]",
		Since: "1.0.0", Complexity: "O(N) of the clauses",
		Reply: fiveReply + ", of the binding clause; with WITHDETAILS also those of every clause, of several policies by policy",
		Run:   use, Parse: useOnStore, Answer: answerUse, Waits: useWaits, Writes: useWrites,
	}}
}

// extraBytes is the maximum number of bytes by which a state key is longer than the state key of
// the first clause: the length of "#try" and of "#" with the number of the clause.
const extraBytes = 7

// policyKey describes how the derived key of a call is made from the arguments policy and key: it
// is the state key of the first clause. policyKeys is for RL.USE, whose calls may name several
// policies, each with a key.
var (
	policyKey  = command.DerivedKey{Append: appendPolicyKey, Last: 2, Extra: extraBytes}
	policyKeys = command.DerivedKey{Append: appendPolicyKey, Last: 2, Next: nextPolicy, Extra: extraBytes}
)

// appendPolicyKey appends the state key of the first clause for the policy and the key that args[at-1]
// and args[at] name.
func appendPolicyKey(dst []byte, args [][]byte, at int) []byte {
	return policy.AppendStateKey(dst, args[at-1], args[at], 1, false)
}

// namesPolicy reports whether the first two arguments of the running command, which is one that
// decides, are a policy and a key.
func namesPolicy(c *command.Call) bool { return c.Cmd.Keys.Derived == &policyKeys }

// These are the replies to calls of RL.USE whose options the policy does not support.
const (
	errUseMember  resp.Error = "ERR the policy has a CC clause, which needs MEMBER"
	errUsePlaces  resp.Error = "ERR the quantity of a CC clause is a number of places, at most 2147483647"
	errUsePartial resp.Error = "ERR PARTIAL is not for a policy with DEBT"
	errUseDebt    resp.Error = "ERR KEEP and CLASS are not for a policy with DEBT"
	errUseUnits   resp.Error = "ERR KEEP with a number of units is for a policy with one clause: name a share such as KEEP 30%"
	errUseCount   resp.Error = "ERR PARTIAL, WAIT, BLOCK and RESERVE are not for a policy with COUNT"
)

// use is the Run function of RL.USE. It replies with the decision of the policy, or parks the
// session if the call waits.
func use(c *command.Call) {
	if c.Server.Options.Remote != nil {
		waitOnStore(c)
		return
	}
	if namesSeveral(c.Args) {
		useSeveral(c)
		return
	}
	s := command.Scratch[scratch](c)
	var u useCall
	if err := u.read(c, s); err != "" {
		c.Fail(err)
		return
	}
	d := s.decider
	if err := d.Find(&u.Lookup); err != nil {
		c.Fail(u.failure(err))
		return
	}
	a := c.OwnAsk()
	if u.Waits() && c.MayWait() {
		u.wait(c, d, a)
		return
	}
	answer, err := d.Decide(&u.Lookup, a)
	if err != nil {
		c.Fail(u.failure(err))
		return
	}
	u.reply(c, &answer)
}

// read parses the call of c into u, which must be zero, and completes it. The error is "" on success.
func (u *useCall) read(c *command.Call, s *scratch) resp.Error {
	if err := u.parse(c.Args[1:], &s.quantities); err != "" {
		return c.WithUsage(err)
	}
	u.of(c)
	return u.setOwn(&s.own)
}

// of sets the fields of u that are not arguments of the call: the database, the state key, the time
// and the caller. It takes them from c, the running command.
func (u *useCall) of(c *command.Call) {
	u.DB, u.StateKey, u.Now, u.Volatile, u.From = c.Client.Selected(), c.DerivedKey, c.Store.Now(), c.Volatile, caller{c}
	if u.id.Token != nil {
		u.ID, u.Reserve.Max = identity(c, u.id.Token), mostReserves(c)
	}
}

// wait decides a call that waits if there is no room, and replies or parks the session. a is the
// memory for its ask.
func (u *useCall) wait(c *command.Call, d *ratelimit.Decider, a *decide.Ask) {
	if err := d.AskToWait(&u.Lookup, a); err != nil {
		c.Fail(u.failure(err))
		return
	}
	a.Millis, a.WithDetails = u.millis, u.withDetails
	if a.Family != decide.Bucket || a.Keep > 0 {
		waitFor(c, a, u.MaxWait, counted{policy: u.Counts(), then: d.Consequences(&u.Lookup)})
		return
	}
	if c.Store.Decide(a); a.Err != nil {
		c.Fail(command.StoreError(a.Err))
		return
	}
	d.Consequences(&u.Lookup).Follow(c.Store, a, c.Store.Now())
	if grantsLater(a) {
		serveOut(c, a, counted{policy: u.Counts()}, nil)
		return
	}
	answer := d.Answer(&u.Lookup, a)
	u.reply(c, &answer)
}

// reply writes answer as the reply to the call, and counts a denial in the statistics of the
// command.
func (u *useCall) reply(c *command.Call, answer *ratelimit.Answer) {
	replyAnswer(c, answer, u.withDetails, u.millis)
}

// replyAnswer does what [useCall.reply] does, with the options of the reply.
func replyAnswer(c *command.Call, answer *ratelimit.Answer, details, millis bool) {
	if answer.Decision.Refused != 0 {
		c.Denied++
	}
	writeAnswer(c.W, answer, details, millis)
}

// failure returns the error reply for err, with which the call has failed.
func (u *useCall) failure(err error) resp.Error {
	switch {
	case errors.Is(err, ratelimit.ErrNoPolicy):
		return command.NoPolicy(u.Policy)
	case errors.Is(err, ratelimit.ErrNoAddress):
		return noAddress(u.Rules, u.Key)
	case errors.Is(err, ratelimit.ErrWide):
		return wideNetwork(u.Rules, u.Key)
	case errors.Is(err, ratelimit.ErrTwice):
		return resp.SyntaxNear(u.Key) + ": the same policy and network are named twice"
	case errors.Is(err, ratelimit.ErrNoMember):
		return errUseMember
	case errors.Is(err, ratelimit.ErrQuantities):
		return resp.Error(fmt.Sprintf("ERR %d quantities for %d clauses: the limits for this key need one quantity, or one for each clause",
			len(u.Quantities), len(u.Limits.Clauses)))
	case errors.Is(err, ratelimit.ErrPartial):
		return errUsePartial
	case errors.Is(err, ratelimit.ErrCount) && u.Own != nil:
		return errOwnMode
	case errors.Is(err, ratelimit.ErrCount):
		return errUseCount
	case errors.Is(err, ratelimit.ErrNoClass):
		return command.NoClass(string(u.Policy), u.Class)
	case errors.Is(err, ratelimit.ErrKeepDebt):
		return errUseDebt
	case errors.Is(err, ratelimit.ErrKeepUnits):
		return errUseUnits
	case errors.Is(err, slidingwindow.ErrLogTooLong):
		return resp.ErrLogTooLong
	case errors.Is(err, concurrency.ErrMemberTooLong):
		return resp.ErrMemberTooLong
	case errors.Is(err, ratelimit.ErrPlaces):
		return errUsePlaces
	}
	return command.StoreError(err)
}

// useWrites is the Writes function of RL.USE. It returns false for a call that changes nothing,
// such as one with PEEK.
func useWrites(_ *command.Call, _ *command.Command, args [][]byte) bool {
	if namesSeveral(args) {
		u := new(severalCall)
		return u.parse(args) != "" || !u.looks()
	}
	var (
		u          useCall
		quantities quantities
	)
	return u.parse(args[1:], &quantities) != "" || !u.Looks()
}

// useWaits is the Waits function of RL.USE. It reports whether the arguments contain BLOCK.
func useWaits(_ *command.Server, args [][]byte) bool { return saysBlock(args) }

package limiters

import (
	"errors"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/resp"
)

// severalCall is a parsed call of RL.USE that names several policies. A worker reuses its memory.
type severalCall struct {
	// useCall has the options of the call. Its Lookup has only the fields that all parts share.
	useCall
	// any says that the call charges the first policy that passes. Otherwise it charges all
	// policies or none.
	any   bool
	parts []ratelimit.Part // the policies, keys and quantities of the call; refers to room

	room struct {
		parts      [policy.MaxCallClauses]ratelimit.Part
		callers    [policy.MaxCallClauses]policyCaller
		quantities [policy.MaxCallClauses]quantities
	}
}

// errTooManyPolicies is the error for a call whose policies have more than [policy.MaxCallClauses] clauses
// in all, which is so if there are more policies than that.
const errTooManyPolicies resp.Error = "ERR the policies have too many clauses, at most 64 in all"

// useSeveral is the Run function of RL.USE for calls that name several policies.
func useSeveral(c *command.Call) {
	s := command.Scratch[scratch](c)
	u := s.severalCall()
	defer u.forget()
	if err := u.parse(c.Args); err != "" {
		c.Fail(c.WithUsage(err))
		return
	}
	u.of(c)
	d, a := s.decider, c.OwnAsk()
	if at, err := d.FindAll(u.parts); err != nil {
		c.Fail(partFailure(u.parts, at, err))
		return
	}
	if !u.any && u.Mode == ratelimit.Block && u.waits() && c.MayWait() {
		u.wait(c, d, a)
		return
	}
	var whole *limit.Decision
	var at int
	var err error
	if u.any {
		whole, at, err = d.Any(u.parts)
	} else {
		whole, at, err = d.All(u.parts, a)
	}
	if err != nil {
		c.Fail(partFailure(u.parts, at, err))
		return
	}
	replyParts(c, whole, u.parts, u.withDetails, u.millis)
}

// replyParts writes the reply to a call under several policies, and counts a denial in the statistics of the command.
func replyParts(c *command.Call, whole *limit.Decision, parts []ratelimit.Part, details, millis bool) {
	if whole.Refused != 0 {
		c.Denied++
	}
	writeParts(c.W, whole, parts, details, millis)
}

// of completes the parts: it sets the options of the call, and the database, the time and the
// caller of c, the running command.
func (u *severalCall) of(c *command.Call) {
	u.useCall.of(c)
	u.callers(c, u.parts)
	for i := range u.parts {
		p := &u.parts[i]
		p.DB, p.Now, p.Volatile = u.DB, u.Now, u.Volatile
		p.Mode, p.MaxWait, p.Keep, p.Class, p.Member, p.ID, p.Reserve = u.Mode, u.MaxWait, u.Keep, u.Class, u.Member, u.ID, u.Reserve
	}
	u.parts[0].StateKey = u.StateKey
}

// callers sets From of each of parts, the parts of the call c. The callers are in the memory of u.
func (u *severalCall) callers(c *command.Call, parts []ratelimit.Part) {
	for i := range parts {
		u.room.callers[i] = policyCaller{caller{c}, parts[i].Policy}
		parts[i].From = &u.room.callers[i]
	}
}

// waits reports whether the call waits if it does not pass. That is so if no block denies it and at
// least one policy that can deny it charges units.
func (u *severalCall) waits() bool {
	some := false
	for i := range u.parts {
		some = some || u.parts[i].Waits()
	}
	return some && !ratelimit.AnyBlocked(u.parts)
}

// wait decides a call that may wait until all of its policies pass. It replies, or parks the
// session. a is the memory for its ask.
func (u *severalCall) wait(c *command.Call, d *ratelimit.Decider, a *decide.Ask) {
	if at, err := d.AskAll(u.parts, a); err != nil {
		c.Fail(partFailure(u.parts, at, err))
		return
	}
	a.Millis, a.WithDetails = u.millis, u.withDetails
	waitFor(c, a, u.MaxWait, counted{all: d.WaitAll(u.parts), parts: u.parts, then: d.ConsequencesOf(u.parts)})
}

// looks reports whether the call changes no state: no policy is charged, and none gets units back.
func (u *severalCall) looks() bool {
	for i := range u.parts {
		if p := &u.parts[i]; u.Mode != ratelimit.Peek && !p.Looks() {
			return false
		}
	}
	return true
}

// partFailure returns the error reply for err, with which a call of parts has failed at the part with the index
// at. An error about the options or the quantities names the policy.
func partFailure(parts []ratelimit.Part, at int, err error) resp.Error {
	p := &parts[at]
	part := useCall{Lookup: p.Lookup}
	switch is := part.failure(err); {
	case errors.Is(err, ratelimit.ErrClauses):
		return errTooManyPolicies
	case errors.Is(err, ratelimit.ErrNoMember), errors.Is(err, ratelimit.ErrQuantities),
		errors.Is(err, ratelimit.ErrPartial), errors.Is(err, ratelimit.ErrCount),
		errors.Is(err, ratelimit.ErrKeepDebt), errors.Is(err, ratelimit.ErrPlaces), errors.Is(err, reservation.ErrFamily):
		return "ERR policy '" + resp.Error(p.Rules.Name) + "': " + is[len("ERR "):]
	default:
		return is
	}
}

// forget drops the references to the arguments and to policies.
func (u *severalCall) forget() {
	clear(u.parts)
	clear(u.room.callers[:len(u.parts)])
	u.useCall, u.parts = useCall{}, nil
}

// policyCaller is the caller of a command, for the statistics about the policy called policy. It is used if the command
// names several policies or its arguments are no longer valid.
type policyCaller struct {
	caller
	policy []byte
}

// Describe describes the call of RL.USE that a Remote has decided: see [hotkeys.Caller].
func (c *policyCaller) Describe(d *hotkeys.Detail, _ decide.Family) {
	d.Client, d.Command = c.call.Client.ID, c.call.Cmd.Name
	d.Add(c.policy)
	d.EndLimit()
}

// writeParts writes the decision on a call under several policies to w. If details is true, an
// array with an element for each policy follows: the decisions on its clauses, or nil if the policy
// was not tried.
func writeParts(w *resp.Writer, whole *limit.Decision, parts []ratelimit.Part, details, millis bool) {
	if !details {
		writeDecision(w, whole, millis)
		return
	}
	w.Array(2)
	writeDecision(w, whole, millis)
	w.Array(len(parts))
	for i := range parts {
		all := parts[i].Details
		if all == nil {
			w.NullArray()
			continue
		}
		w.Array(len(all))
		for j := range all {
			writeDecision(w, &all[j], millis)
		}
	}
}

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
	// useCall has the options of the call. Of its Lookup only the fields that parts share are set.
	useCall
	// any says that the first policy that passes is charged. Otherwise all are charged or none.
	any   bool
	parts []ratelimit.Part // refers to room

	room struct {
		parts      [policy.MaxClauses]ratelimit.Part
		callers    [policy.MaxClauses]policyCaller
		quantities [policy.MaxClauses]quantities
	}
}

// errTooManyPolicies is the error for a call whose policies have more than [policy.MaxClauses] clauses
// in all, which is so if there are more policies than that.
const errTooManyPolicies resp.Error = "ERR the policies have too many clauses, at most 16 in all"

// useSeveral is the Run function of RL.USE for calls that name several policies.
func useSeveral(c *command.Call) {
	s := command.Scratch[scratch](c)
	if s.several == nil {
		s.several = new(severalCall)
	}
	u := s.several
	defer u.forget()
	if err := u.parse(c.Args); err != "" {
		c.Fail(c.WithUsage(err))
		return
	}
	u.of(c)
	d, a := s.decider, c.OwnAsk()
	if at, err := d.FindAll(u.parts); err != nil {
		c.Fail(u.failure(at, err))
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
		c.Fail(u.failure(at, err))
		return
	}
	if whole.Refused != 0 {
		c.Denied++
	}
	writeParts(c.W, whole, u.parts, u.withDetails, u.millis)
}

// of completes the parts: it sets the options of the call, and what the arguments do not give, which it
// takes from c, the running command.
func (u *severalCall) of(c *command.Call) {
	u.useCall.of(c)
	at := policyKeys.Last
	for i := range u.parts {
		p, from := &u.parts[i], &u.room.callers[i]
		*from = policyCaller{caller{c}, at - 1}
		p.DB, p.Now, p.Volatile, p.From = u.DB, u.Now, u.Volatile, from
		p.Mode, p.MaxWait, p.Keep, p.Class, p.Member, p.ID, p.Reserve = u.Mode, u.MaxWait, u.Keep, u.Class, u.Member, u.ID, u.Reserve
		at = policyKeys.After(c.Args, at)
	}
	u.parts[0].StateKey = u.StateKey
}

// waits reports whether the call waits if it does not pass: no block denies it, and a policy that can
// deny it charges units.
func (u *severalCall) waits() bool {
	some := false
	for i := range u.parts {
		some = some || u.parts[i].Waits()
	}
	return some && !ratelimit.AnyBlocked(u.parts)
}

// wait decides a call that waits until all of its policies pass, and replies or parks the session. a
// is the memory for its ask.
func (u *severalCall) wait(c *command.Call, d *ratelimit.Decider, a *decide.Ask) {
	if at, err := d.AskAll(u.parts, a); err != nil {
		c.Fail(u.failure(at, err))
		return
	}
	a.Millis, a.WithDetails = u.millis, u.withDetails
	waitFor(c, a, u.MaxWait, counted{all: d.WaitAll(u.parts), parts: u.parts, then: d.ConsequencesOf(u.parts)})
}

// looks reports whether no policy is charged and none gets units back.
func (u *severalCall) looks() bool {
	for i := range u.parts {
		if p := &u.parts[i]; u.Mode != ratelimit.Peek && !p.Looks() {
			return false
		}
	}
	return true
}

// failure returns the error reply for err, with which the call has failed at the part with the index
// at. An error about the options or the quantities names the policy.
func (u *severalCall) failure(at int, err error) resp.Error {
	p := &u.parts[at]
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

// policyCaller is the caller of a command that names several policies, for the statistics about one
// of them. at is the index of the argument that names this policy.
type policyCaller struct {
	caller
	at int
}

// Describe implements [hotkeys.Caller].
func (c *policyCaller) Describe(d *hotkeys.Detail, _ decide.Family) {
	d.Client, d.Command = c.call.Client.ID, c.call.Cmd.Name
	d.Add(c.call.Args[c.at])
	d.EndLimit()
}

// writeParts writes the decision on a call under several policies to w. If details is true, an array
// follows that has an element for each policy: the decisions on its clauses, or nil if it was not
// tried.
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

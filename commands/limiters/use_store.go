package limiters

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/resp"
)

// With the option store, all states of a key under one policy are one value in the store. The functions of this file
// parse and answer the commands that name a policy and a key. Each command makes one ask of the family decide.Joint.

// useOnStore is the Parse function of RL.USE with the option store.
func useOnStore(c *command.Call) resp.Error {
	s := command.Scratch[scratch](c)
	if namesSeveral(c.Args) {
		u := s.severalCall()
		defer u.forget()
		if err := u.parseOnStore(c, s); err != "" {
			return err
		}
		u.ask(c, s)
		return ""
	}
	var u useCall
	if err := u.parseOnStore(c, s); err != "" {
		return err
	}
	s.decider.Joint(&u.Lookup, u.newAsk(c))
	return ""
}

// parseOnStore parses the call of c, and looks up which limits apply to its key. The error is "" on
// success.
func (u *useCall) parseOnStore(c *command.Call, s *scratch) resp.Error {
	if err := u.read(c, s); err != "" {
		return err
	}
	if err := s.decider.FindShared(&u.Lookup); err != nil {
		return u.failure(err)
	}
	return ""
}

// newAsk returns a new ask of the call. The decider has to set its remaining fields.
func (u *useCall) newAsk(c *command.Call) *decide.Ask {
	a := c.NewAsk(decide.Joint, nil)
	a.Millis, a.WithDetails = u.millis, u.withDetails
	return a
}

// parseOnStore does what [useCall.parseOnStore] does, for a call that names several policies.
func (u *severalCall) parseOnStore(c *command.Call, s *scratch) resp.Error {
	if err := u.parse(c.Args); err != "" {
		return c.WithUsage(err)
	}
	u.of(c)
	if at, err := s.decider.FindAllShared(u.parts); err != nil {
		return partFailure(u.parts, at, err)
	}
	return ""
}

// ask makes the ask of the call.
func (u *severalCall) ask(c *command.Call, s *scratch) {
	a := c.NewAsk(decide.Joint, nil)
	s.decider.JointAll(u.parts, u.any, a)
	a.Millis, a.WithDetails = u.millis, u.withDetails
}

// waitOnStore is the Run function of RL.USE for a call with BLOCK that may wait. It parks the session if the call waits
// for room. If the call does not wait, or takes tokens in advance, it is one ask, as without BLOCK.
func waitOnStore(c *command.Call) {
	s := command.Scratch[scratch](c)
	if namesSeveral(c.Args) {
		u := s.severalCall()
		defer u.forget()
		if err := u.parseOnStore(c, s); err != "" {
			c.Fail(err)
			return
		}
		if u.Mode != ratelimit.Block || !u.waits() || !u.waitOnStore(c, s.decider) {
			c.CollectAsk(func() { u.ask(c, s) })
		}
		return
	}
	var u useCall
	if err := u.parseOnStore(c, s); err != "" {
		c.Fail(err)
		return
	}
	d, a := s.decider, c.OwnAsk()
	joint := d.Joint
	if u.Waits() {
		joint = d.JointToWait
		if d.AskToWait(&u.Lookup, a) == nil && (a.Family != decide.Bucket || a.Keep > 0) {
			a.Millis, a.WithDetails = u.millis, u.withDetails
			waitFor(c, a, u.MaxWait, counted{policy: u.Counts(), joint: d.JointStore(&u.Lookup), then: d.Consequences(&u.Lookup)})
			return
		}
	}
	c.CollectAsk(func() { joint(&u.Lookup, u.newAsk(c)) })
}

// answerUse is the Answer function of RL.USE with the option store.
func answerUse(c *command.Call, a *decide.Ask) {
	s := command.Scratch[scratch](c)
	if parts := ratelimit.PartsOf(a); len(parts) > 0 {
		u := s.severalCall()
		u.callers(c, parts)
		whole, at, err := s.decider.AnswerParts(a)
		clear(u.room.callers[:len(parts)])
		if err != nil {
			c.Fail(partFailure(parts, at, err))
			return
		}
		replyParts(c, whole, parts, a.WithDetails, a.Millis)
		return
	}
	l := ratelimit.LookupOf(a)
	s.caller = policyCaller{caller{c}, l.Policy}
	l.From = &s.caller
	defer func() { s.caller = policyCaller{} }()
	if grant := s.decider.Granted(a); grant != nil {
		grant.Millis, grant.WithDetails = a.Millis, a.WithDetails
		by := counted{policy: l.Counts(), joint: ratelimit.NewJointStore(l)}
		serveOut(c, grant, by, command.CloneArgs([][]byte{nil, l.Policy, l.Key}))
		return
	}
	answer, err := s.decider.AnswerJoint(l, a)
	if err != nil {
		u := useCall{Lookup: *l}
		c.Fail(u.failure(err))
		return
	}
	replyAnswer(c, &answer, a.WithDetails, a.Millis)
}

// explainOnStore is the Parse function of RL.EXPLAIN with the option store.
func explainOnStore(c *command.Call) resp.Error {
	s := command.Scratch[scratch](c)
	var u useCall
	if err := u.parseExplain(c, &s.quantities); err != "" {
		return err
	}
	a := c.NewAsk(decide.Joint, nil)
	l, err := s.decider.ExplainJoint(u.Call, a)
	if u.Lookup = l; err != nil {
		return u.failure(err)
	}
	return ""
}

// answerExplain is the Answer function of RL.EXPLAIN with the option store.
func answerExplain(c *command.Call, a *decide.Ask) {
	writeExplainResult(c, ratelimit.ExplanationOf(a), a.Err)
}

// resetOnStore is the Parse function of RL.RESET with the option store.
func resetOnStore(c *command.Call) resp.Error {
	name := c.Args[1]
	of, err := stateOf(c, name, c.Args[2])
	if err != "" {
		return err
	}
	ratelimit.Forget(c.NewAsk(decide.Joint, nil), c.Client.Selected(), name, of, false)
	return ""
}

// answerReset is the Answer function of RL.RESET with the option store.
func answerReset(c *command.Call, a *decide.Ask) {
	if a.Err != nil {
		c.Fail(command.StoreError(a.Err))
		return
	}
	c.W.Int(a.Program.(*ratelimit.Forgetting).Removed)
}

// stateOf returns the parts from which the state keys of key under the policy called name are made. The error is "" if
// the policy exists and can have that key.
func stateOf(c *command.Call, name, key []byte) (of []byte, _ resp.Error) {
	service := command.ServerState[ratelimit.Service](c)
	p := service.Policy(name)
	if p == nil {
		u := useCall{Lookup: ratelimit.Lookup{Call: ratelimit.Call{Policy: name}}}
		return nil, u.failure(service.NoPolicy())
	}
	u := useCall{Lookup: ratelimit.Lookup{Call: ratelimit.Call{Policy: name, Key: key}, Rules: p}}
	of, err := ratelimit.AppendStateOf(nil, p, key, c.Store.Now())
	if err != nil {
		return nil, u.failure(err)
	}
	return of, ""
}

package ratelimit

import (
	"bytes"
	"slices"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/policy"
)

// FindShared is [Decider.Find] for a call whose state is in a store that other servers share. It does not look for a
// ban, because [Decider.Joint] does so in the same step as the decision. It returns the errors of Find, without those
// of the store.
func (d *Decider) FindShared(l *Lookup) error {
	d.keys.begin(l.Volatile)
	if err := d.findLimits(l); err != nil {
		return err
	}
	l.banned, l.waited = 0, false
	return nil
}

// Joint makes a an ask of family [decide.Joint], which takes all steps of [Decider.Decide] for the call that
// [Decider.FindShared] has looked up: it decides the call, its ban and its candidate on one state. A call in the mode
// Block does not wait. The key of a is the key of the state of the policy's first clause. After a was decided,
// [Decider.AnswerJoint] gives the answer. Until then a refers to no memory of l or of d, except l.From and the parts of
// the table of policies in l.
func (d *Decider) Joint(l *Lookup, a *decide.Ask) {
	j := d.joints.next(d.service)
	j.how, j.lookup = 0, *l
	j.own(&j.lookup)
	j.into(a, &j.lookup)
}

// LookupOf returns the lookup of the call that a, an ask of [Decider.Joint], decides. It has copies of the bytes of the
// call, which are valid as long as the answer to a.
func LookupOf(a *decide.Ask) *Lookup { return &a.Program.(*joint).lookup }

// AnswerJoint returns the answer to the call that a, an ask of [Decider.Joint], has decided, and counts it as
// [Decider.Decide] does. It is called once, by the decider of any worker. Only From of l is used; l may be the result
// of [LookupOf]. The answer is valid until the next call, and the bytes of the call until the end of the batch. It
// returns the errors of Decide.
func (d *Decider) AnswerJoint(l *Lookup, a *decide.Ask) (Answer, error) {
	j := a.Program.(*joint)
	d.joints.used = append(d.joints.used, j)
	own := &j.lookup
	switch own.From = l.From; {
	case a.Err != nil:
		return Answer{}, a.Err
	case own.Blocked():
		return d.deny(own, &j.ask), nil
	}
	return d.counted(own, &j.ask, &j.outcome, &j.steps), nil
}

// joint is the program of one call.
type joint struct {
	steps
	lookup  Lookup // the call and what applies to it, for a call under one policy
	how     how
	ask     decide.Ask // the ask about the limits in force
	outcome outcome    // the outcome of the last run
	joined             // the parts of a call under several policies

	bytes      []byte // memory for the bytes of lookup and of the parts of joined
	quantities []int64
}

// into makes a the ask of j, whose key is the key of the state of l.
func (j *joint) into(a *decide.Ask, l *Lookup) {
	a.DB, a.Key, a.Others, a.Family, a.Program, a.Err, a.Next = l.DB, l.StateKey, j.others, decide.Joint, j, nil, nil
	a.ID.Token, a.Reserve.TTL, a.Counts, a.Keep, a.Rank, a.Foreign, a.Lapsed = nil, 0, false, 0, 0, 0, 0
}

// own makes o, a lookup of j, own its bytes and quantities, and have the key of the state.
func (j *joint) own(o *Lookup) {
	for _, b := range [...]*[]byte{&o.Policy, &o.Key, &o.Network, &o.Member, &o.ID.Token, &o.Class} {
		if *b == nil {
			continue
		}
		from := len(j.bytes)
		j.bytes = append(j.bytes, *b...) // append may move the memory; earlier copies remain valid in the old memory
		*b = j.bytes[from:len(j.bytes):len(j.bytes)]
	}
	from := len(j.bytes)
	j.bytes = policy.AppendStateKey(j.bytes, o.Policy, o.state(), 1, false)
	o.StateKey = j.bytes[from:len(j.bytes):len(j.bytes)]
	if o.Quantities != nil {
		from = len(j.quantities)
		j.quantities = append(j.quantities, o.Quantities...)
		o.Quantities = j.quantities[from:]
	}
	o.Volatile = false
}

// Run implements [decide.Program]. For a call under one policy it sets the ban in j.lookup, and j.ask and
// j.outcome. For a call under several policies it sets the bans in j.parts, and the results in j.together and
// j.stopped.
func (j *joint) Run(decide func(*decide.Ask)) error {
	j.store = asking(decide)
	defer func() { j.store = nil }()
	l := &j.lookup
	if j.outcome, j.keys.buf = (outcome{}), j.keys.buf[:0]; len(j.parts) > 0 {
		j.runSeveral()
		return nil
	}
	if err := j.findBan(l); err != nil || l.Blocked() {
		return err
	}
	return j.decide(l, j.how, &j.ask, &j.outcome)
}

// Number returns the number of the clause to which key belongs: see [decide.Program].
func (j *joint) Number(key []byte) (n uint8, ok bool) {
	if bytes.Equal(key, j.lookup.StateKey) { // most asks are about this key
		return 1, true
	}
	return policy.StateNumber(key, j.lookup.Policy, j.lookup.state())
}

// Guessed implements [decide.Program]: a call may be answered by the policy for a store that cannot
// be reached.
func (*joint) Guessed() bool { return true }

// asking is a [Store] that decides asks by calling itself.
type asking func(*decide.Ask)

// Decide decides a by calling s: see [Store].
func (s asking) Decide(a *decide.Ask) { s(a) }

// joints has the programs of a decider. used are those whose answers are still in use, and free those that the next
// calls may use.
type joints struct{ used, free []*joint }

// maxJoints is the maximum number of programs that are kept for later calls.
const maxJoints = 256

// next returns a program that is not in use.
func (p *joints) next(s *Service) *joint {
	if last := len(p.free) - 1; last >= 0 {
		j := p.free[last]
		p.free = p.free[:last]
		return j
	}
	j := new(joint)
	j.service = s
	return j
}

// endBatch ends the use of the programs whose answers were in use.
func (p *joints) endBatch() {
	for _, j := range p.used {
		if len(p.free) == maxJoints || cap(j.bytes) > maxKeys {
			continue
		}
		j.endBatch()
		j.ask.Forget()
		j.forget()
		j.lookup, j.outcome, j.bytes, j.quantities = Lookup{}, outcome{}, j.bytes[:0], j.quantities[:0]
		p.free = append(p.free, j)
	}
	clear(p.used)
	p.used = slices.Delete(p.used, 0, len(p.used))
}

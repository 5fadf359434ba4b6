package ratelimit

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// FindAllShared is [Decider.FindAll] for a call whose states are in a store that other servers share. It does not look
// for bans, because [Decider.JointAll] does so in the same step as the decision. It returns the errors of FindAll,
// without those of the store.
func (d *Decider) FindAllShared(parts []Part) (at int, err error) {
	if at, err = d.findParts(parts); err != nil {
		return at, err
	}
	for i := range parts {
		parts[i].banned, parts[i].waited = 0, false
	}
	return 0, nil
}

// JointAll makes a an ask of family [decide.Joint], which takes all steps of [Decider.All], or of [Decider.Any] if
// anyOf is true, for the call that [Decider.FindAllShared] has looked up. A call in the mode Block does not wait. The
// keys of a are the keys of the states of the first clause of each policy. After a was decided, [Decider.AnswerParts]
// gives the answer. Until then a refers to no memory of parts or of d, except From and the parts of the table of
// policies in parts.
func (d *Decider) JointAll(parts []Part, anyOf bool, a *decide.Ask) {
	j := d.joints.next(d.service)
	j.how, j.parts, j.anyOf = 0, append(j.parts, parts...), anyOf
	for i := range j.parts {
		l := &j.parts[i].Lookup
		if j.own(l); i > 0 {
			j.others = append(j.others, l.StateKey)
		}
	}
	j.into(a, &j.parts[0].Lookup)
}

// PartsOf returns the parts of the call that a, an ask of [Decider.JointAll], decides, or nil if a is one of
// [Decider.Joint]. They have copies of the bytes of the call, which are valid as long as the answer to a.
func PartsOf(a *decide.Ask) []Part { return a.Program.(*joint).parts }

// AnswerParts returns the answer to the call that a, an ask of [Decider.JointAll], has decided, and counts it. It is
// called once, by the decider of any worker. From of each of [PartsOf] is used, and has to be set before. The answer is
// valid until the next call, and the bytes of the call until the end of the batch. It returns the errors of
// [Decider.All] and [Decider.Any].
func (d *Decider) AnswerParts(a *decide.Ask) (whole *limit.Decision, at int, err error) {
	j := a.Program.(*joint)
	d.joints.used = append(d.joints.used, j)
	switch {
	case a.Err != nil:
		return nil, 0, a.Err
	case j.stopped:
		return d.denyAll(j.parts, &j.ask), 0, nil
	}
	return d.countedAll(j.parts, &j.ask, &j.together, &j.steps)
}

// joined has the fields of the program of a call under several policies. It is empty for other
// calls.
type joined struct {
	parts  []Part
	others [][]byte // keys of the states of all parts but the first
	// anyOf says that the first part that passes is charged.
	anyOf bool
	// stopped says that, in the last run, a block has denied the call. Otherwise together is the outcome of its steps.
	stopped  bool
	together severally
}

// forget drops the references to the call.
func (m *joined) forget() {
	clear(m.parts)
	clear(m.others)
	*m = joined{parts: m.parts[:0], others: m.others[:0]}
}

// runSeveral takes the steps of the call under the parts. An error is the error of the call; it does not undo earlier
// decisions.
func (j *joint) runSeveral() {
	x := &j.together
	*x = severally{}
	if x.at, x.err = j.findBans(j.parts); x.err != nil {
		j.beginPieces(len(j.parts))
		return
	}
	j.stopped = !j.anyOf && AnyBlocked(j.parts)
	switch {
	case j.stopped:
	case j.anyOf:
		j.decideAny(j.parts, x)
	default:
		j.decideAll(j.parts, &j.ask, x)
	}
}

// Locate implements [decide.Spanning].
func (j *joint) Locate(key []byte) (state int, n uint8, ok bool) {
	for i := range j.parts {
		l := &j.parts[i].Lookup
		if n, ok = policy.StateNumber(key, l.Policy, l.state()); ok {
			return i, n, true
		}
	}
	return 0, 0, false
}

// Divides implements [decide.Divisible]. It returns false for a call with an ID, because all states have to remember
// the ID in one step, and for a call that waits, because its charges cannot be taken back.
func (j *joint) Divides() bool {
	return len(j.parts) > 0 && j.parts[0].ID.Token == nil && j.parts[0].Mode != Block
}

var _ decide.Divisible = (*joint)(nil)

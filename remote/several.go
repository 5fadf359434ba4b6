package remote

import (
	"slices"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
)

// inOneSlot reports whether the keys of all items are in one slot, so that the engine can write
// them in one step.
func (x *exchanger) inOneSlot(items ...*item) bool {
	slot, first, one := 0, true, true
	for _, it := range items {
		eachKey(it.ask, func(name []byte) {
			n := x.engine.Slot(append([]byte(x.prefix), name...))
			one = one && (first || n == slot)
			slot, first = n, false
		})
	}
	return one
}

// several decides an RL.MULTI, or a joint ask about several states: in one step if its keys are in one slot. Otherwise
// it decides an RL.MULTI key by key, as across does, and a joint ask slot by slot, as divided does. There are two
// exceptions. With refuseAcross, or if it has an identity that its keys have to remember in one step, an RL.MULTI gets
// [decide.ErrCrossSlot]. With refuseAcross, or if its program is not divisible, a joint ask gets
// [decide.ErrStatesApart].
func (x *exchanger) several(it *item) {
	if x.inOneSlot(it) {
		x.gather([]*item{it}, true, (*group).decideTogether)
		return
	}
	var refused error
	switch {
	case it.ask.Family == decide.Joint:
		if p, ok := it.ask.Program.(decide.Divisible); ok && p.Divides() && !x.limits.refuseAcross {
			x.divide(it, p)
			return
		}
		refused = decide.ErrStatesApart
	case x.limits.refuseAcross || needsEngine(it.ask):
		refused = decide.ErrCrossSlot
	}
	if refused != nil {
		it.stage, it.ask.Err = answered, refused
		it.flight.answered(1)
		return
	}
	x.gather([]*item{it}, false, func(g *group) {
		a := &across{group: g, member: &g.asks[0]}
		a.decide()
	})
}

// together decides the asks of a transaction: at one instant if their keys are in one slot,
// otherwise one by one, each by route. Asks about all keys are always passed to route.
func (x *exchanger) together(f *flight, route func(*item)) {
	var items []*item
	for i := range f.items {
		if it := &f.items[i]; it.ask.Family != decide.Admin || it.ask.Admin.Op < decide.Scan {
			items = append(items, it)
		}
	}
	if len(items) > 1 && x.inOneSlot(items...) {
		x.gather(items, true, (*group).decideTogether)
	}
	for i := range f.items {
		if it := &f.items[i]; it.group == nil {
			route(it)
		}
	}
}

// across is an RL.MULTI with keys in several slots, which an engine cannot write in one step. All
// keys are read, and all clauses are decided at one instant. A refusal writes nothing. If all
// clauses pass, each key is written separately. If another server has written one of the keys
// first, its clause is decided again. If that clause is refused now, the other writes are undone.
//
// So no call is admitted beyond a limit. If this server crashes in between, the charges that it has
// written remain.
type across struct {
	*group
	member  *member
	left    int  // number of parts that are being written, plus one while decide runs
	refused bool // whether a clause was refused in a later decision
	err     error
}

// decide decides all clauses, after their parts have been read, and starts the writes. A refused or
// failed ask is answered without a write.
func (x *across) decide() {
	g, a := x.group, &x.member.own
	g.begin()
	g.decide(x.member)
	if a.Err != nil || a.Refused {
		g.answerAll()
		g.end()
		return
	}
	x.left = 1
	for i := range g.parts {
		if p := &g.parts[i]; p.changes && g.prepare(p) {
			x.left++
			x.write(i)
		}
	}
	x.settled()
}

// write writes part i to the engine. If another server has written the key first, the clause of the
// part is decided again. If the write is given up, the policy answers the ask. Each of these cases
// ends with a call of settled.
func (x *across) write(i int) {
	x.send([]int{i}, func(became outcome) {
		switch {
		case became == done:
			x.settled()
		case became == undecided || became == lost && x.over():
			x.giveUp(late)
			x.settled()
		default:
			x.pauseFor(&x.parts[i], func() { x.again(i) })
		}
	})
}

// again decides clause i once more, because another server has written the key of part i first. If
// the clause is granted, again sends the new write. Otherwise it calls settled.
func (x *across) again(i int) {
	g, p, a := x.group, &x.parts[i], &x.member.own
	if x.refused || x.err != nil || g.over() {
		x.settled()
		return
	}
	now := max(g.timing.Now(), p.v.stamp)
	g.now = max(g.now, now)
	p.next, p.changes = p.v.at(now), false
	err := p.err
	if err == nil {
		err = g.work().plan.Clause(i, &p.next, now, a)
	}
	if err == nil && a.Details[i].Allowed() {
		err = g.apply(p, &g.work().plan.Plan)
	}
	switch {
	case err != nil:
		x.err = err
	case !a.Details[i].Allowed():
		x.refused = true
	case p.changes && g.prepare(p):
		x.write(i)
		return
	}
	x.settled()
}

// settled records that one more part has no request in progress. When no request is in progress
// any more, it answers the ask, and undoes the writes if a clause was refused.
func (x *across) settled() {
	if x.left--; x.left > 0 {
		return
	}
	g, m := x.group, x.member
	if x.err != nil || x.refused {
		was, missing := slices.Clone(m.own.Details), m.own.Missing
		m.own.Err = x.err
		if x.err == nil {
			g.count.races.Add(1)
			x.describe()
		}
		g.answerAll()
		// The charges to be given back are the charges of the first decision.
		m.own.Details, m.own.Missing, m.own.Refused, m.own.Err, m.refundDue = was, missing, false, nil, true
	}
	g.answerAll()
	g.undo(g.end)
}

// describe replaces the answer of the ask by the answer of a refusal in which no clause is charged.
func (x *across) describe() {
	g, a := x.group, &x.member.own
	refused := slices.Clone(a.Details)
	entryOf := func(i int) *entry.Entry {
		v := &g.parts[i].v
		if g.parts[i].applied {
			v = &g.parts[i].old
		}
		e := v.at(g.now)
		return &e
	}
	var again decide.Rounds
	if err := again.All(a, g.now, entryOf); err != nil || !a.Refused {
		// The new decision would admit, because there are enough units again. Keep the answers of
		// the refusal.
		copy(a.Details, refused)
	}
	a.Refuse()
}

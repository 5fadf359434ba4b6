package cluster

import (
	"slices"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
)

// inOneSlot reports whether the keys of all items are in one slot.
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

// several decides an RL.MULTI.
func (x *exchanger) several(it *item) {
	if x.inOneSlot(it) {
		x.gather([]*item{it}, (*group).decideTogether)
		return
	}
	if x.limits.refuseAcross {
		it.stage, it.ask.Err = answered, decide.ErrCrossSlot
		it.flight.answered(1)
		return
	}
	x.gather([]*item{it}, func(g *group) {
		a := &across{group: g, member: &g.asks[0]}
		a.decide()
	})
}

// together decides the asks of a transaction: at one instant if their keys are in one slot,
// otherwise one by one, each by route. Asks about all keys are never part of it.
func (x *exchanger) together(f *flight, route func(*item)) {
	var items []*item
	for i := range f.items {
		if it := &f.items[i]; it.ask.Family != decide.Admin || it.ask.Admin.Op < decide.Scan {
			items = append(items, it)
		}
	}
	if len(items) > 1 && x.inOneSlot(items...) {
		x.gather(items, (*group).decideTogether)
	}
	for i := range f.items {
		if it := &f.items[i]; it.group == nil {
			route(it)
		}
	}
}

// across is an RL.MULTI with keys in several slots, which no engine writes at once. All keys are
// read and all clauses decided at one instant, and a refusal writes nothing. If all pass, each key
// is written separately. If another server has written one of the keys first, its clause is decided
// again, and if it is refused now, the other writes are undone.
//
// So nothing is admitted beyond a limit. If a server dies in between, the charges that it has
// written remain.
type across struct {
	*group
	member  *member
	left    int  // number of parts that are being written
	refused bool // a clause was refused after all
	err     error
}

// decide decides all clauses, whose parts have been read.
func (x *across) decide() {
	g, a := x.group, &x.member.own
	g.now = g.instant()
	for i := range g.parts {
		p := &g.parts[i]
		p.next, p.changes, p.applied = p.v.at(g.now), false, false
	}
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

// write writes part i to the engine.
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

// again decides clause i once more, since another server has written its key first.
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
		err = g.plan.Clause(i, &p.next, now, a)
	}
	if err == nil && a.Details[i].Allowed() {
		err = g.apply(p, &g.plan.Plan)
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

// settled says that one more part has no request in progress.
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
		// The charges are those of the first decision.
		m.own.Details, m.own.Missing, m.own.Refused, m.own.Err, m.refundDue = was, missing, false, nil, true
	}
	g.answerAll()
	g.undo()
}

// describe answers as a refusal does, since no charge remains.
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
		// A moment later there were enough units again.
		copy(a.Details, refused)
	}
	a.Refuse()
}

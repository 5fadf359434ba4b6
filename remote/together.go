package remote

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/remote/states"
)

// decideTogether decides all asks of the group at one instant, one after another, and writes all their changes in one
// step. The keys must be in one slot. If another server has written first, it decides again. It also decides again if
// it has used a remembered value of a key that it does not write: the engine compares only the keys that are written,
// so it reads that key first. The lock must be held.
func (g *group) decideTogether() {
	g.begin()
	for n := range g.asks {
		g.decide(&g.asks[n])
	}
	unsure := func(p *part) bool { return p.mine && !p.changes }
	for i := range g.parts {
		if unsure(&g.parts[i]) {
			g.look(unsure, g.decideTogether)
			return
		}
	}
	g.conclude(g.decideTogether)
}

// begin begins a decision at the present instant, on the values that were read for the parts.
func (g *group) begin() {
	g.now, g.tooLarge = g.instant(), 0
	for i := range g.parts {
		p := &g.parts[i]
		p.next, p.changes, p.applied = p.v.at(g.now), false, false
	}
}

// conclude writes the changes that were decided, in one step, and answers the asks. If another server has written
// first, it reads the changed values and calls again with the lock.
func (g *group) conclude(again func()) {
	var changed []int
	for i := range g.parts {
		if p := &g.parts[i]; p.changes && g.prepare(p) {
			changed = append(changed, i)
		}
	}
	if len(changed) == 0 {
		g.answerAll()
		g.end()
		return
	}
	g.send(changed, func(became outcome) {
		switch {
		case became == done:
			g.answerAll()
			g.undo(g.end)
		case became == lost && g.over():
			g.end()
		case became == undecided || g.over():
			g.giveUp(late)
			g.end()
		default:
			g.pause(func(look bool) {
				// Keys without a conflict may also have changed.
				g.look(func(p *part) bool { return look || p.stale || !p.changes }, again)
			})
		}
	})
}

// decide decides the ask of m on the entries that the asks before it have left, and stores the
// answer in m.own. If one of the entries could not be read, answerForeign gives the answer.
func (g *group) decide(m *member) {
	a := &m.own
	a.Err = nil
	a.ResetAnswer()
	for _, i := range m.at {
		if g.parts[i].err != nil {
			answerForeign(a)
			return
		}
	}
	switch a.Family {
	case decide.Several:
		a.Err = g.decideClauses(m)
		return
	case decide.Joint:
		a.Err = g.decideJoint(a, m.at)
		return
	}
	p := &g.parts[m.at[0]]
	if p.next.Kind == states.Joint {
		whole := firstOf(a)
		if err := g.decideJoint(&whole, m.at); err != nil {
			a.Err = err
		}
		tellBytes(a, len(p.key.full)+len(p.v.raw))
		return
	}
	plan := &g.work().plan.Plan
	switch a.Err = plan.One(&p.next, g.now, a); {
	case a.Err == nil && a.Linked:
		a.Err = decide.ErrLinked
	case a.Err == nil:
		a.Err = g.apply(p, plan)
	}
	tellBytes(a, len(p.key.full)+len(p.v.raw))
	plan.Forget()
}

// decideJoint does what decide does, for a [decide.Joint] about the keys of the parts with the indices at. The program
// is nil if the policy has answered the ask.
func (g *group) decideJoint(a *decide.Ask, at []int) error {
	most := g.limits.maxValue - headerLen - mostOlder*tagLen
	entryOf := func(i int) *entry.Entry { return &g.parts[at[i]].next }
	joint := &g.work().joint
	err := states.DecideSeveral(joint, a, len(at), entryOf, g.now, most)
	for n, i := range at {
		is, p := &joint.State, &g.parts[i]
		if n > 0 {
			is = &joint.Others[n-1]
		}
		if g.tooLarge += is.TooLarge; err == nil && is.Changed {
			p.next, p.changes = states.EntryOf(is, nil), true
		}
	}
	joint.Forget()
	return err
}

// decideClauses decides an RL.MULTI and applies the changes: all clauses are charged or none.
func (g *group) decideClauses(m *member) error {
	entryOf := func(i int) *entry.Entry { return &g.parts[m.at[i]].next }
	plan := &g.work().plan
	if err := plan.All(&m.own, g.now, entryOf); err != nil || !plan.Changes {
		return err
	}
	type before struct {
		next    entry.Entry
		changes bool
	}
	was := make([]before, len(m.at))
	for n, i := range m.at {
		was[n] = before{g.parts[i].next, g.parts[i].changes}
	}
	for n, i := range m.at {
		p := &g.parts[i]
		err := plan.Again(n, &p.next)
		if err == nil {
			err = g.apply(p, &plan.Plan)
		}
		if err != nil {
			for n, i := range m.at {
				g.parts[i].next, g.parts[i].changes = was[n].next, was[n].changes
			}
			return err
		}
	}
	return nil
}

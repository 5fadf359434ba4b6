package remote

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
)

// settling is the settlement of a reservation of several keys, whose names are in the value of the key of the
// settlement. It gets the turn at all of these keys, and settles them in one step.
type settling struct {
	*group
	all decide.Settlements
}

// settling returns a group for the settlement in the item it, after an exchange has found that the settlement is about
// several keys. The group was not started. The lock of the shard must be held.
func (x *exchanger) settling(it *item) *settling {
	s := &settling{group: x.group([]*item{it})}
	s.all.Start(&s.asks[0].own)
	s.ended = s.all.Forget
	return s
}

// start begins with the key of the settlement, and with those that were found in an earlier round.
func (s *settling) start() {
	names := make([][]byte, s.all.Len())
	for i := range names {
		names[i] = s.all.Key(i)
	}
	s.gather(names, s.settle)
}

// settle settles the reservation at all keys at one instant. If there are keys that the group does not have, it starts
// again with them. The lock must be held.
func (s *settling) settle() {
	g, a, plan := s.group, &s.asks[0].own, &s.work().plan.Plan
	g.begin()
	a.ResetAnswer()
	if g.parts[0].err != nil {
		answerForeign(a)
		g.conclude(s.settle)
		return
	}
	s.all.Begin(g.now)
	_ = s.each(func(i int, e *entry.Entry) error { s.all.Find(plan, i, e); return nil }) // there is never an error
	if s.all.More() {
		g.later(g.turn.end)
		g.later(s.start)
		return
	}
	if a.Linked = s.all.Linked(); a.Linked {
		a.Err = s.settleAll()
	} else if a.Err = plan.One(&g.parts[0].next, g.now, a); a.Err == nil { // the link has been removed in the meantime
		a.Err = g.apply(&g.parts[0], plan)
	}
	plan.Forget()
	if a.Err != nil {
		g.answerAll()
		g.end()
		return
	}
	g.conclude(s.settle)
}

// each calls f with the number and the entry of each part until f returns an error, which it returns. A key whose value
// another program has written no longer has a part of the reservation.
func (s *settling) each(f func(i int, e *entry.Entry) error) error {
	for i := range s.parts {
		p := &s.parts[i]
		if p.err != nil {
			p.next = entry.Entry{}
		}
		if err := f(i, &p.next); err != nil {
			return err
		}
	}
	return nil
}

// settleAll settles the part of the reservation at each key.
func (s *settling) settleAll() error {
	g, plan := s.group, &s.work().plan.Plan
	if !g.oneSlot() {
		return decide.ErrCrossSlot
	}
	_ = s.each(func(_ int, e *entry.Entry) error { s.all.Look(plan, e); return nil })
	if err := s.all.Check(); err != nil {
		return err
	}
	return s.each(func(i int, e *entry.Entry) error {
		if err := s.all.Settle(plan, i, e); err != nil {
			return err
		}
		if g.parts[i].err != nil {
			return nil
		}
		return g.apply(&g.parts[i], plan)
	})
}

// oneSlot reports whether the keys of the group are in one slot.
func (g *group) oneSlot() bool {
	for i := range g.parts {
		if g.engine.Slot(g.parts[i].key.full) != g.engine.Slot(g.parts[0].key.full) {
			return false
		}
	}
	return true
}

package remote

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
)

// undo gives back the charges of the asks with refundDue: the policy has answered them with an
// error, or a clause of an RL.MULTI was refused after other clauses were written. It calls then when each
// charge was given back or cannot be. The lock of the group must be held.
func (g *group) undo(then func()) {
	g.undoes, g.undid = 1, then
	for i := range g.parts {
		p := &g.parts[i]
		if !p.applied {
			continue
		}
		if refunds, whole := g.refundsOf(i); len(refunds) > 0 {
			g.undoes++
			g.restore(i, refunds, whole)
		}
	}
	g.undone()
}

// undone records that one more part needs no more undoing, and calls undid after the last one.
func (g *group) undone() {
	if g.undoes--; g.undoes == 0 {
		g.undid()
	}
}

// refundsOf returns in refunds the asks whose charges have to be given back in part i. A clause of
// an RL.MULTI is returned as an ask. whole says that the write of the part certainly had no other
// changes.
func (g *group) refundsOf(i int) (refunds []*decide.Ask, whole bool) {
	whole = true
	for n := range g.asks {
		m := &g.asks[n]
		for c, at := range m.at {
			if at != i {
				continue
			}
			if p := &g.parts[i]; m.refundDue && p.charged != nil {
				refunds = append(refunds, p.charged...)
			} else if a := m.charge(c); m.refundDue && a != nil {
				refunds = append(refunds, a)
			} else if a != nil || !m.looks() {
				whole = false
			}
		}
	}
	return refunds, whole
}

// charge returns the ask of m, or its clause c as an ask if it is an RL.MULTI. It returns nil if
// no units were taken.
func (m *member) charge(c int) *decide.Ask {
	a := &m.own
	if a.Family == decide.Several {
		if a.Refused || a.Err != nil {
			return nil
		}
		a = clauseAsk(a, c)
	}
	if taken(a) == 0 {
		return nil
	}
	return a
}

// looks reports whether the ask of m certainly changes nothing.
func (m *member) looks() bool {
	if m.own.Family != decide.Admin {
		return false
	}
	switch m.own.Admin.Op {
	case decide.Exists, decide.Expiry, decide.Type, decide.Text, decide.Describe, decide.Members:
		return true
	}
	return false
}

// restore gives back the charges of refunds by writing the old entry of part i under a new tag,
// so that no older write is mistaken for the latest one. If whole is false, or there was a later
// write, it calls refund instead.
func (g *group) restore(i int, refunds []*decide.Ask, whole bool) {
	p := &g.parts[i]
	if !whole || p.v.tag != p.tag {
		g.refund(i, refunds)
		return
	}
	g.now = max(g.timing.Now(), p.v.stamp)
	p.next = p.old.at(g.now)
	g.vacate(p)
	g.prepare(p)
	g.send([]int{i}, func(became outcome) {
		switch became {
		case done:
			g.count.undone.Add(int64(len(refunds)))
			g.undone()
		case notWritten:
			g.refund(i, refunds)
		default:
			g.count.kept.Add(int64(len(refunds)))
			g.undone()
		}
	})
}

// refund gives back the charges of refunds in part i by taking the units back, as far as
// possible.
func (g *group) refund(i int, refunds []*decide.Ask) {
	p := &g.parts[i]
	if p.err != nil {
		g.count.kept.Add(int64(len(refunds)))
		g.undone()
		return
	}
	g.now = max(g.timing.Now(), p.v.stamp)
	p.next, p.changes = p.v.at(g.now), false
	given := 0
	for _, a := range refunds {
		if g.give(p, a) {
			given++
		}
	}
	if !p.changes {
		g.count.kept.Add(int64(len(refunds)))
		g.undone()
		return
	}
	g.vacate(p)
	g.prepare(p)
	g.send([]int{i}, func(became outcome) {
		switch became {
		case done:
			g.count.refunded.Add(int64(given))
			g.count.kept.Add(int64(len(refunds) - given))
			g.undone()
		case notWritten:
			g.pauseFor(p, func() { g.refund(i, refunds) })
		default:
			g.count.kept.Add(int64(len(refunds)))
			g.undone()
		}
	})
}

// vacate puts an expired entry in place of none as the next entry of p. It is like an absent key for decisions. A second
// copy of the write that is being undone may still arrive, and would write to an absent key.
func (g *group) vacate(p *part) {
	if p.next.Kind == entry.None {
		p.next = entry.Entry{Kind: entry.Cell, Expiry: g.now}
	}
}

// give applies the refund of a to the next entry of p, and reports whether units were given back.
func (g *group) give(p *part, a *decide.Ask) bool {
	switch {
	case p.next.Kind == entry.None:
		return false
	case p.charged != nil:
		return g.giveInto(p, a)
	}
	back := refund(a, &p.v, g.now, false)
	if back == nil {
		return false
	}
	plan := &g.work().plan.Plan
	err := plan.One(&p.next, g.now, back)
	if err != nil || plan.Action == decide.Keep {
		return false
	}
	return g.apply(p, plan) == nil
}

// clauseAsk returns the n-th clause of a as a separate ask with the clause's answer. Its quantity
// is the number of units that the clause was granted.
func clauseAsk(a *decide.Ask, n int) *decide.Ask {
	c := &a.Clauses[n]
	one := &decide.Ask{DB: a.DB, Key: c.Key, Now: a.Now, Decision: a.Details[n]}
	missing := a.Missing
	if c.Fixed {
		missing = 0
	}
	switch {
	case c.Window != nil:
		one.Family, one.Window = decide.Window, *c.Window
		one.Window.Quantity -= missing
	case c.Bucket != nil:
		one.Family, one.Bucket = decide.Bucket, *c.Bucket
		one.Bucket.Quantity -= missing
	case c.Lease != nil:
		one.Family, one.Lease = decide.Lease, *c.Lease
	case c.Quota != nil:
		one.Family, one.Quota, one.Quantity = decide.Cell, *c.Quota, c.Quantity-missing
	}
	return one
}

func (e *exchange) countUndone(it *item) {
	if it.ask.Err == nil && it.ask.Decision.Allowed() {
		e.count.undone.Add(1)
		return
	}
	e.count.kept.Add(1)
}

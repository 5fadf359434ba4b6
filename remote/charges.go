package remote

import (
	"slices"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/remote/states"
)

// charges is the program of a joint ask, with a record of the charges of its last run to each state. Each charge is a
// copy of an ask about one limit, or of a clause as an ask. Its key is one byte, the number of the part that was
// charged. A denial that counts towards a ban is a charge, too.
type charges struct {
	decide.Divisible
	of [][]*decide.Ask
}

// Run makes the charges, one after another: see [decide.Program].
func (c *charges) Run(decideOn func(*decide.Ask)) error {
	clear(c.of)
	return c.Divisible.Run(func(a *decide.Ask) {
		if decideOn(a); a.Err == nil {
			c.note(a)
		}
	})
}

// note adds the charges of a, which was decided without an error.
func (c *charges) note(a *decide.Ask) {
	if a.Family != decide.Several {
		one := &decide.Ask{
			Family: a.Family, Now: a.Now, Decision: a.Decision, Denied: a.Family == decide.Ban && a.Denied,
			Quota: a.Quota, Quantity: a.Quantity, Window: a.Window, Bucket: a.Bucket, Lease: a.Lease,
		}
		c.add(a.Key, one, a.Counts)
		return
	}
	if slices.ContainsFunc(a.Clauses, func(c decide.Clause) bool { return c.Peek }) {
		return
	}
	for i := range a.Clauses {
		counts := a.Clauses[i].Counts && !a.Partial
		if !a.Refused || counts {
			c.add(a.Clauses[i].Key, clauseAsk(a, i), counts)
		}
	}
}

// add adds one ask to the charges of the state that has the part key, if the ask is a charge. counts says that it is
// charged even if it is denied.
func (c *charges) add(key []byte, one *decide.Ask, counts bool) {
	if counts && one.Family != decide.Lease {
		one.Decision.Refused = 0
	}
	if taken(one) == 0 && returned(one) == 0 && !one.Denied {
		return
	}
	state, n, _ := c.Locate(key)               // such a part exists, because the ask was decided
	one.Key, one.Lease.Member = []byte{n}, nil // the member is nil, because it belongs to the program
	c.of[state] = append(c.of[state], one)
}

// sameCharge reports whether a and b charge the same units to the same part.
func sameCharge(a, b *decide.Ask) bool {
	return a.Key[0] == b.Key[0] && a.Family == b.Family && taken(a) == taken(b) && returned(a) == returned(b)
}

// giveInto does what give does, for a charge in a [charges], to a part of the state in p.
func (g *group) giveInto(p *part, charge *decide.Ask) bool {
	whole := decide.Ask{Family: decide.Joint, Program: &refunding{g: g, p: p, charge: charge}}
	joint := &g.work().joint
	err := states.Decide(joint, &whole, &p.next, g.now, g.limits.maxValue-headerLen-mostOlder*tagLen)
	given := err == nil && joint.Changed
	if given {
		p.next, p.changes = states.EntryOf(&joint.State, nil), true
	}
	joint.Forget()
	return given
}

// refunding is a program that gives back a charge to the part of p.
type refunding struct {
	g      *group
	p      *part
	charge *decide.Ask
}

// Run implements [decide.Program].
func (r *refunding) Run(decideOn func(*decide.Ask)) error {
	all := r.g.work().joint.All
	at := slices.IndexFunc(all, func(is decide.Part) bool { return is.Number == r.charge.Key[0] })
	if at < 0 {
		return nil
	}
	v := value{stamp: r.p.v.stamp, entry: all[at].Entry}
	if back := refund(r.charge, &v, r.g.now, false); back != nil {
		decideOn(back)
		return back.Err
	}
	return nil
}

// Number implements [decide.Program].
func (*refunding) Number(key []byte) (n uint8, ok bool) { return key[0], true }

// Guessed implements [decide.Program].
func (*refunding) Guessed() bool { return false }

var _ decide.Divisible = (*charges)(nil)

package ratelimit

import (
	"bytes"
	"errors"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/reservation"
)

// Part is one policy of a call that names several. The parts of a call differ only in Policy, Key,
// StateKey, Quantity, Quantities and From. No two of them may have the same policy and key. With the
// mode Partial, all of them must have the same Quantity.
type Part struct {
	Lookup
	// Details has the decision on each clause of the policy. It is nil if the policy was not tried, and
	// valid until the next call.
	Details []limit.Decision

	from int // index of the first clause of the part in the memory of the decider
	// number and of are set for a reservation. of is the number of its windows and buckets, and number is the index of
	// the part's first one among them. The first part, which a settlement names, has a link to keys, the other keys of
	// the reservation.
	number, of uint8
	link       bool
	keys       [][]byte
}

// terms returns the terms of the reservation of p; zero if the call is not a reservation.
func (p *Part) terms() reservation.Terms {
	if !p.reserves() {
		return reservation.Terms{}
	}
	t := p.Reserve
	t.Of, t.Linked, t.Link, t.Keys = p.of, true, p.link, p.keys
	return t
}

// ErrClauses says that the policies of a call have more than [policy.MaxCallClauses] clauses in all.
var ErrClauses = errors.New("too many clauses")

// FindAll is [Decider.Find] for each of parts, and sets the fingerprint of their ID. It returns the
// errors of Find, [ErrClauses] and [ErrTwice]; at is the index of the part that an error is about.
func (d *Decider) FindAll(parts []Part) (at int, err error) {
	if at, err = d.findParts(parts); err != nil {
		return at, err
	}
	return d.findBans(parts)
}

// findParts does what [Decider.FindAll] does, except that it looks for no bans.
func (d *Decider) findParts(parts []Part) (at int, err error) {
	n := 0
	d.keys.begin(parts[0].Volatile)
	for i := range parts {
		p := &parts[i]
		if err := d.findLimits(&p.Lookup); err != nil {
			return i, err
		}
		if p.Network != nil && sharesState(parts[:i], p) {
			return i, ErrTwice
		}
		if n += len(p.Limits.Clauses); n > policy.MaxCallClauses {
			return i, ErrClauses
		}
	}
	if parts[0].ID.Token != nil {
		var all idempotency.Print
		for i := range parts {
			all.Int(int64(parts[i].fingerprint()))
		}
		for i := range parts {
			parts[i].ID.Print = all.Sum()
		}
	}
	return 0, nil
}

// sharesState reports whether one of parts, which were looked up, has the same policy and the same
// state as p.
func sharesState(parts []Part, p *Part) bool {
	for i := range parts {
		if q := &parts[i]; bytes.Equal(q.Policy, p.Policy) && bytes.Equal(q.state(), p.state()) {
			return true
		}
	}
	return false
}

// All decides a call under several policies, which are charged all or none, and counts the answer.
// [Decider.FindAll] has looked up its parts. All sets the Details of the parts, and uses a, which is
// decided at once: a call in the mode Block does not wait.
//
// The policies that can deny are decided together, as one decision about all their clauses. If they pass, each policy
// that cannot deny, because of an exemption or a shadow, is decided and charged by itself; an error of its keys counts
// as a denial. A policy with the flag Count is charged in any case, unless there is a block. The result is the binding
// decision: on the clauses of the policies that can deny or, if no policy can, on all clauses. A block of any policy
// denies the call, and then only the blocked policies are tried. The repetition of a call charges no policy, and tries
// only those that can deny.
//
// It returns the errors of [Decider.Ask] and of the store. at is the index of the part that an
// error of Ask is about.
func (d *Decider) All(parts []Part, a *decide.Ask) (whole *limit.Decision, at int, err error) {
	if AnyBlocked(parts) {
		return d.denyAll(parts, a), 0, nil
	}
	var x severally
	d.decideAll(parts, a, &x)
	return d.countedAll(parts, a, &x, &d.steps)
}

// Any decides a call under several policies, of which the first that passes is charged, as are those with the flag
// Count that were tried before it, and counts
// the answer. [Decider.FindAll] has looked up its parts. Any sets the Details of the parts that it
// tries, in their order: the last of them passes, or else all parts deny the call. Then the result
// is the decision of the part that would pass first, by RetryAfter. The mode must be
// neither Partial nor Block.
//
// It returns the errors of [Decider.Ask] and of the store; at is the index of the part.
func (d *Decider) Any(parts []Part) (whole *limit.Decision, at int, err error) {
	var x severally
	d.decideAny(parts, &x)
	return d.countedAll(parts, nil, &x, &d.steps)
}

// AnyBlocked reports whether a block denies one of parts.
func AnyBlocked(parts []Part) bool {
	for i := range parts {
		if parts[i].Blocked() {
			return true
		}
	}
	return false
}

// AskAll sets the fields of a, an ask about all clauses of the parts that can deny the call, and
// prepares the decisions on the other parts. There must be no block. It returns the errors of
// [Decider.Ask]; at is the index of the part that the error is about.
func (d *Decider) AskAll(parts []Part, a *decide.Ask) (at int, err error) { return d.askAll(parts, a) }

// denyAll answers a call that is denied because a block denies at least one of parts. It uses a for
// the statistics.
func (d *Decider) denyAll(parts []Part, a *decide.Ask) *limit.Decision {
	n := 0
	for i := range parts {
		n += len(parts[i].Limits.Clauses)
	}
	d.main.Grow(n)
	n = 0
	for i := range parts {
		p := &parts[i]
		if p.Details = nil; !p.Blocked() {
			continue
		}
		from := n
		n += len(p.Limits.Clauses)
		p.Details = d.main.Details[from:n]
		d.denyInto(&p.Lookup, a, p.Details)
		switch b := p.Details[0]; {
		case from == 0:
			d.whole = b
		case d.whole.RetryAfter == limit.NoRetry: // the block that ends last has no end
		case b.RetryAfter == limit.NoRetry || b.RetryAfter > d.whole.RetryAfter:
			d.whole.RetryAfter, d.whole.ResetAfter = b.RetryAfter, b.ResetAfter
		}
	}
	return &d.whole
}

// countedAll counts the outcome of the steps s, which have decided the call under parts, and returns the answer. a is
// the ask about the policies that can deny the call.
func (d *Decider) countedAll(parts []Part, a *decide.Ask, x *severally, s *steps) (whole *limit.Decision, at int, err error) {
	if x.common {
		if a.ID.Token != nil {
			d.Recorder.NoteID(parts[0].From, a)
		}
		d.service.Keys.NoteLapsed(a.Lapsed)
	}
	for i := range parts {
		d.countPiece(&parts[i], &s.pieces[i])
	}
	if x.err != nil {
		return nil, x.at, x.err
	}
	return &s.whole, 0, nil
}

// countPiece counts the outcome of the steps for p, and delivers the notices about its key.
func (d *Decider) countPiece(p *Part, is *piece) {
	if is.blocked {
		d.countBlocked(&p.Lookup, &is.ask, &p.Details[0])
		return
	}
	if is.passes {
		p.countLenient(is.denied)
	}
	if is.reserves {
		d.countFree(&p.Lookup, &is.free)
	}
	if is.noted {
		d.Recorder.NoteClauses(p.From, &is.ask, true)
	}
	d.service.Notices.tell(&p.Lookup, p.Now, is.told)
	if n := p.Counts(); is.answers && n != nil {
		n.Answered(is.denies)
	}
	if is.tries {
		d.countTrial(&p.Lookup, is.denied, is.trial)
	}
}

// countFree counts a, a reservation without units.
func (d *Decider) countFree(l *Lookup, a *decide.Ask) {
	d.service.Keys.NoteLapsed(a.Lapsed)
	d.Recorder.NoteID(l.From, a)
}

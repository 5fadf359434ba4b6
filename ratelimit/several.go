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

	from int // the index of the first clause in the memory of the decider
	// number and of are set for a reservation: the number of the first window or bucket of the part among all
	// of the reservation, from 0, and the number of all. The first part, which the settlement names, has a
	// link to keys, the others of the reservation.
	number, of uint8
	link       bool
	keys       [][]byte
}

// terms returns the terms of the reservation of p, or zero if the call is none.
func (p *Part) terms() reservation.Terms {
	if !p.reserves() {
		return reservation.Terms{}
	}
	t := p.Reserve
	t.Of, t.Linked, t.Link, t.Keys = p.of, true, p.link, p.keys
	return t
}

// ErrClauses says that the policies of a call have more than [policy.MaxClauses] clauses in all.
var ErrClauses = errors.New("too many clauses")

// FindAll is [Decider.Find] for each of parts, and sets the fingerprint of their ID. In case of an
// error, which may also be [ErrClauses] or [ErrTwice], at is the index of the part that it is about.
func (d *Decider) FindAll(parts []Part) (at int, err error) {
	n := 0
	d.keys.begin(parts[0].Volatile)
	for i := range parts {
		p := &parts[i]
		if err := d.find(&p.Lookup); err != nil {
			return i, err
		}
		if p.Network != nil && sharesState(parts[:i], p) {
			return i, ErrTwice
		}
		if n += len(p.Limits.Clauses); n > policy.MaxClauses {
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

// sharesState reports whether one of parts, which were looked up, has the policy and the state of p.
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
// The policies that can deny are decided together, as one decision about all their clauses. If they
// pass, each policy that cannot deny, because of an exemption or a shadow, is decided and charged by
// itself; an error of its keys counts as a denial. A policy with the flag Count is charged in any case, unless
// there is a block. The result is the decision that binds: that on the clauses of the policies that can deny
// or, if no policy can, on all clauses. A block of any policy denies the call, and then only the blocked
// policies are tried. The repetition of a call charges no policy, and tries only those that can deny.
//
// The errors are those of [Decider.Ask] and of the store. at is the index of the part that an error of
// Ask is about.
func (d *Decider) All(parts []Part, a *decide.Ask) (whole *limit.Decision, at int, err error) {
	if AnyBlocked(parts) {
		return d.denyAll(parts, a), 0, nil
	}
	if at, err = d.AskAll(parts, a); err != nil {
		return nil, at, err
	}
	if len(a.Clauses) == 0 {
		return d.passAll(parts)
	}
	if d.store.Decide(a); a.Err != nil {
		return nil, 0, a.Err
	}
	d.AnswerAll(parts, a)
	if a.Repeats() {
		return &d.whole, 0, nil
	}
	for i := range parts {
		switch p := &parts[i]; {
		case !p.lenient():
		case !a.Refused:
			_, _ = d.chargeApart(p, a.Missing)
		case p.counts():
			d.about(&d.piece, p, p.from, len(p.Limits.Clauses))
			if d.store.Decide(&d.piece); d.piece.Err == nil {
				d.service.Notices.tell(&p.Lookup, p.Now, d.piece.Details)
			}
			d.tryCandidate(p, d.piece.Err != nil || d.piece.Refused)
		}
	}
	return &d.whole, 0, nil
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

// AskAll fills in a, an ask about all clauses of the parts that can deny the call, and prepares the
// decisions on the other parts. There must be no block. The errors are those of [Decider.Ask]; at
// is the index of the part that the error is about.
func (d *Decider) AskAll(parts []Part, a *decide.Ask) (at int, err error) {
	strict, at, err := d.prepare(parts, true)
	if err == nil && parts[0].reserves() {
		at, err = d.reserveAll(parts)
	}
	if err != nil {
		return at, err
	}
	d.about(a, &parts[0], 0, strict)
	a.Reserve.Link, a.Reserve.Keys = false, nil
	for i := range parts {
		a.Rank = max(a.Rank, parts[i].Keep.Rank(0)) // all keep shares
		if p := &parts[i]; p.link && !p.lenient() { // the ask about a lenient part has its link
			a.Reserve.Link, a.Reserve.Keys = true, p.keys
		}
	}
	return 0, nil
}

// reserveAll completes the clauses of parts, which were filled in, for a reservation: their numbers, and the
// names of all keys but the first that has a window or a bucket. That is a key of the first part, or of a later one
// if the limits before it are NONE. The errors are [reservation.ErrFamily], [reservation.ErrFirst] and
// [reservation.ErrKeys]; at is the index of the part that the error is about.
func (d *Decider) reserveAll(parts []Part) (at int, err error) {
	var first []byte
	linking, of := 0, uint8(0)
	d.linked = d.linked[:0]
	for i := range parts {
		p := &parts[i]
		if !reservable(p.Limits) {
			return i, reservation.ErrFamily
		}
		p.number = of
		of += d.number(p)
		for _, c := range d.main.Clauses[p.from : p.from+len(p.Limits.Clauses)] {
			if c.Unlimited {
				continue
			}
			if first == nil && c.Lease == nil {
				first, linking = c.Key, i
				continue
			}
			d.linked = append(d.linked, c.Key)
		}
		if first == nil && len(d.linked) > 0 {
			return 0, reservation.ErrFirst
		}
	}
	if first == nil {
		return 0, nil // nothing is kept
	}
	if d.linked = append(d.linked, first); reservation.CheckKeys(d.linked) != nil {
		return 0, reservation.ErrKeys
	}
	for i := range parts {
		parts[i].of = of
	}
	parts[linking].link, parts[linking].keys = true, d.linked[:len(d.linked)-1]
	return 0, nil
}

// number numbers the windows and buckets among the clauses of p, which were filled in, and returns how many
// there are.
func (d *Decider) number(p *Part) (n uint8) {
	for i := range p.Limits.Clauses {
		if c := &d.main.Clauses[p.from+i]; c.Lease == nil && !c.Unlimited {
			c.Index = p.number + n
			n++
		}
	}
	return n
}

// prepare fills in the clauses of all parts that no block denies. The clauses of the parts that can
// deny the call come first; strict is the number of these clauses. together says that the parts are
// charged all or none: a part whose quantity is 0 is then left alone, unless the call only looks.
func (d *Decider) prepare(parts []Part, together bool) (strict, at int, err error) {
	n, looks := 0, together
	for i := range parts {
		n += len(parts[i].Limits.Clauses)
		looks = looks && parts[i].Looks()
	}
	d.main.Grow(n)
	n = 0
	for _, lenient := range [...]bool{false, true} {
		for i := range parts {
			p := &parts[i]
			if p.lenient() != lenient {
				continue
			}
			p.Details, p.from = nil, n
			if n += len(p.Limits.Clauses); p.Blocked() {
				continue
			}
			if together && !looks && p.Looks() {
				p.Quantities = d.zeros[:len(p.Limits.Clauses)]
			}
			if err = d.fillPart(p, looks || !together && p.Looks()); err != nil {
				return 0, i, err
			}
		}
		if !lenient {
			strict = n
		}
	}
	return strict, 0, nil
}

// fillPart fills in the clauses of p. looks is that of fill.
func (d *Decider) fillPart(p *Part, looks bool) error {
	if !p.fits(p.Limits) {
		return ErrQuantities
	}
	if err := p.check(p.Limits); err != nil {
		return err
	}
	return d.fill(&p.Lookup, p.Limits, 0, &d.main, p.from, looks)
}

// about makes a an ask about n clauses that were filled in, from the index from on, for p or for a call
// whose parts have the options of p.
func (d *Decider) about(a *decide.Ask, p *Part, from, n int) {
	a.DB, a.Family, a.Key, a.Err, a.Foreign, a.Lapsed = p.DB, decide.Several, nil, nil, 0, 0
	a.Refused, a.Missing, a.Partial, a.ID, a.Reserve = false, 0, p.Mode == Partial && p.Quantity > 0, p.ID, p.terms()
	a.Clauses, a.Details = d.main.Clauses[from:from+n], d.main.Details[from:from+n]
	a.Keep, a.Rank = 0, 0
}

// denyAll answers a call of which a block denies one or several of parts. It uses a for the statistics.
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
		case d.whole.RetryAfter == limit.NoRetry: // that block has no end
		case b.RetryAfter == limit.NoRetry || b.RetryAfter > d.whole.RetryAfter:
			d.whole.RetryAfter, d.whole.ResetAfter = b.RetryAfter, b.ResetAfter
		}
	}
	return &d.whole
}

// AnswerAll returns the decision on a, the ask of [Decider.AskAll], which was decided without an
// error. It sets the Details of the parts that a is about, and counts the decision on each.
func (d *Decider) AnswerAll(parts []Part, a *decide.Ask) *limit.Decision {
	d.whole = a.Binding()
	if a.ID.Token != nil {
		d.Recorder.NoteID(parts[0].From, a)
	}
	d.service.Keys.NoteLapsed(a)
	for i := range parts {
		p := &parts[i]
		if p.lenient() {
			continue
		}
		n := len(p.Limits.Clauses)
		clauses := a.Clauses[p.from : p.from+n]
		p.Details = a.Details[p.from : p.from+n]
		d.note(p, a, clauses)
		if a.Repeats() {
			continue
		}
		if !p.waited {
			d.service.Notices.tell(&p.Lookup, p.Now, p.Details)
		}
		switch denies := denies(a, clauses, p.Details); {
		case denies || !a.Refused:
			if a.Refused && !p.waited {
				d.countDenial(&p.Lookup, &d.whole)
			}
			d.countPart(p, denies, denies)
		case p.counts():
			d.tryCandidate(p, false) // another policy denies the call, and this one is charged
		}
	}
	return &d.whole
}

// denies reports whether details, the decisions on clauses, are the reason why not all units of the
// call a were granted. clauses are some of those of a.
func denies(a *decide.Ask, clauses []decide.Clause, details []limit.Decision) bool {
	if a.Refused || a.Missing == 0 {
		return deniesAny(details)
	}
	for i := range details {
		if c := &clauses[i]; details[i].Remaining == 0 && !c.Fixed && c.Lease == nil {
			return true // the clause has had no more units than were granted
		}
	}
	return false
}

// deniesAny reports whether one of details denies the call.
func deniesAny(details []limit.Decision) bool {
	for i := range details {
		if details[i].Refused != 0 {
			return true
		}
	}
	return false
}

// note counts the decision of a on the clauses of p in the statistics of keys. clauses are those of p
// in a.
func (d *Decider) note(p *Part, a *decide.Ask, clauses []decide.Clause) {
	s := &d.piece
	d.about(s, p, 0, 0)
	s.Clauses, s.Details, s.ID.Token = clauses, p.Details, nil // AnswerAll has noted the ID
	if f := a.Foreign - p.from; 0 < f && f <= len(clauses) {
		s.Foreign = f
	}
	d.Recorder.NoteClauses(p.From, s, true)
}

// countPart counts the answer of the policy of p, and has the candidate of the policy decide the call,
// too. denied says whether the limits deny the call, and answered whether the policy does.
func (d *Decider) countPart(p *Part, denied, answered bool) {
	if n := p.Counts(); n != nil {
		n.Answered(answered)
	}
	d.tryCandidate(p, denied)
}

// tryCandidate has the candidate of the policy of p decide the call, too, if it has one. denied says whether the limits deny
// the call.
func (d *Decider) tryCandidate(p *Part, denied bool) {
	if p.hasCandidate() && !p.Looks() && p.Mode != Block {
		d.try(&p.Lookup, denied)
	}
}

// chargeApart decides the call for p, a part that cannot deny it, and counts the answer, which passes.
// missing is the number of units of a Partial that the call was not granted. After an error, p has no
// Details, and the call counts as one that the limits deny.
func (d *Decider) chargeApart(p *Part, missing int64) (is limit.Decision, err error) {
	s, n := &d.piece, len(p.Limits.Clauses)
	if missing > 0 {
		asked := p.Quantity
		p.Quantity -= missing
		_ = d.fillPart(p, false) // there was no error for more units
		d.number(p)
		p.Quantity = asked
	}
	d.about(s, p, p.from, n)
	d.store.Decide(s)
	denied := s.Err != nil || s.Refused || s.Missing > 0
	if !s.Repeats() {
		p.countLenient(denied)
	}
	if d.reserveNothing(s) {
		d.countFree(&p.Lookup, &d.free)
	}
	if s.Err == nil {
		is, p.Details = s.Binding(), d.keep(p.from, s.Details...)
		pass(&is)
		passEach(s.Details)
		d.Recorder.NoteClauses(p.From, s, true)
	}
	if !s.Repeats() {
		d.service.Notices.tell(&p.Lookup, p.Now, p.Details)
		d.countPart(p, denied, false)
	}
	return is, s.Err
}

// countFree counts a, a reservation of nothing.
func (d *Decider) countFree(l *Lookup, a *decide.Ask) {
	d.service.Keys.NoteLapsed(a)
	d.Recorder.NoteID(l.From, a)
}

// passEach turns the decisions of details into those of a call that passes.
func passEach(details []limit.Decision) {
	for i := range details {
		pass(&details[i])
	}
}

// passAll decides a call of which no part can deny it. The error is that of the store if no part could
// be decided.
func (d *Decider) passAll(parts []Part) (whole *limit.Decision, at int, err error) {
	d.whole = limit.Decision{RetryAfter: limit.NoRetry}
	decided := false
	for i := range parts {
		is, failed := d.chargeApart(&parts[i], 0)
		if failed != nil {
			err = failed
			continue
		}
		if !decided || is.Remaining < d.whole.Remaining {
			d.whole.Limit, d.whole.Remaining = is.Limit, is.Remaining
		}
		d.whole.ResetAfter = max(d.whole.ResetAfter, is.ResetAfter)
		decided = true
	}
	if !decided {
		return nil, 0, err
	}
	return &d.whole, 0, nil
}

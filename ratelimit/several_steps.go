package ratelimit

import (
	"slices"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/reservation"
)

// severally is the outcome of the steps of a call under several policies as a whole. The decision is steps.whole.
type severally struct {
	// err is the error of the call, and at is the index of the part that the error is about.
	err error
	at  int
	// common says that the policies that can deny the call were decided together, without an error.
	common bool
}

// piece is the outcome of the steps of a call under several policies for one of them.
type piece struct {
	// ask is the ask about the policy alone, or the part of the ask about several policies that concerns it. free is
	// the ask of a reservation without units.
	ask, free decide.Ask
	turnout
}

// turnout has the results of a [piece] that have to be counted.
type turnout struct {
	blocked  bool // whether a block denies the call
	noted    bool // whether the statistics of keys count the ask
	passes   bool // whether the call passes because of an exemption or a shadow, whatever the limits decide
	denied   bool // whether the limits deny the call
	answers  bool // whether the counters of the policy count an answer of its own
	denies   bool // whether that answer is a denial
	reserves bool // whether there is a reservation without units
	tries    bool // whether the candidate of the policy has decided the call, too, with the result trial
	trial    trial
	// told has the decisions for which notices may be delivered.
	told []limit.Decision
}

// noQuantities has a quantity of 0 for each clause, for a policy that a call under several policies
// does not charge.
var noQuantities [policy.MaxClauses]int64

// decideAll decides the call under parts, which are charged all or none, and sets x. No block denies it. It uses a.
func (s *steps) decideAll(parts []Part, a *decide.Ask, x *severally) {
	*x = severally{}
	if x.at, x.err = s.askAll(parts, a); x.err != nil {
		return
	}
	if len(a.Clauses) == 0 {
		x.err = s.passAll(parts)
		return
	}
	if s.store.Decide(a); a.Err != nil {
		x.err = a.Err
		return
	}
	x.common = true
	s.concludeAll(parts, a)
	if a.Repeats() {
		return
	}
	for i := range parts {
		switch p := &parts[i]; {
		case !p.Lenient():
		case !a.Refused:
			_, _ = s.chargeApart(p, &s.pieces[i], a.Missing)
		case p.counts():
			s.chargeDenied(p, &s.pieces[i])
		}
	}
}

// beginPieces begins the pieces of a call under n policies.
func (s *steps) beginPieces(n int) {
	if more := n - len(s.pieces); more > 0 {
		s.pieces = slices.Grow(s.pieces, more)[:n]
	}
	for i := range s.pieces[:n] {
		s.pieces[i].turnout = turnout{}
	}
}

// findBans sets banned of each of parts. If the store returns an error, at is the index of the
// part.
func (s *steps) findBans(parts []Part) (at int, err error) {
	for i := range parts {
		if err := s.findBan(&parts[i].Lookup); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// askAll sets the fields of a, an ask about all clauses of the parts that can deny the call, and
// prepares the decisions on the other parts. There must be no block. It returns the errors of
// [Decider.Ask]; at is the index of the part that the error is about.
func (s *steps) askAll(parts []Part, a *decide.Ask) (at int, err error) {
	strict, at, err := s.prepare(parts, true)
	if err == nil && parts[0].reserves() {
		at, err = s.reserveAll(parts)
	}
	if err != nil {
		return at, err
	}
	s.about(a, &parts[0], 0, strict)
	a.Reserve.Link, a.Reserve.Keys = false, nil
	for i := range parts {
		a.Rank = max(a.Rank, parts[i].Keep.Rank(0)) // the Keeps of all parts are shares
		if p := &parts[i]; p.link && !p.Lenient() { // a part that cannot deny has the link in its own ask
			a.Reserve.Link, a.Reserve.Keys = true, p.keys
		}
	}
	return 0, nil
}

// concludeAll sets the Details and the pieces of the parts of a, an ask that was decided without an error.
func (s *steps) concludeAll(parts []Part, a *decide.Ask) {
	s.whole = a.Binding()
	for i := range parts {
		p, is := &parts[i], &s.pieces[i]
		if p.Lenient() {
			continue
		}
		n := len(p.Limits.Clauses)
		clauses := a.Clauses[p.from : p.from+n]
		p.Details = a.Details[p.from : p.from+n]
		is.noted = true
		s.extract(&is.ask, p, a)
		if a.Repeats() {
			continue
		}
		is.told = p.Details
		switch denies := denies(a, clauses, p.Details); {
		case denies || !a.Refused:
			if a.Refused {
				s.countDenial(&p.Lookup, &s.whole)
			}
			is.answers, is.denies = true, denies
			s.tryPart(p, is, denies)
		case p.counts():
			s.tryPart(p, is, false) // another policy denies the call, but this policy charges denied calls
		}
	}
}

// extract sets b to the part of the decided ask a that concerns p, whose Details are set.
func (s *steps) extract(b *decide.Ask, p *Part, a *decide.Ask) {
	n := len(p.Details)
	s.about(b, p, 0, 0)
	b.Clauses, b.Details = a.Clauses[p.from:p.from+n], p.Details
	b.ID.Token = nil // the statistics of a count the ID already
	if f := a.Foreign - p.from; 0 < f && f <= n {
		b.Foreign = f
	}
}

// denies reports whether one of details, the decisions on clauses, is the reason that not all units
// of the call a were granted. clauses are some of the clauses of a.
func denies(a *decide.Ask, clauses []decide.Clause, details []limit.Decision) bool {
	if a.Refused || a.Missing == 0 {
		return deniesAny(details)
	}
	for i := range details {
		if c := &clauses[i]; details[i].Remaining == 0 && !c.Fixed && c.Lease == nil {
			return true // the clause had only as many units as were granted
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

// tryPart makes the candidate of the policy of p, if it has one, decide the call, too. denied says whether the limits
// deny the call.
func (s *steps) tryPart(p *Part, is *piece, denied bool) {
	is.denied = denied
	if is.tries = p.tries(); is.tries {
		is.trial = s.try(&p.Lookup)
	}
}

// chargeApart decides the call for p, a part that cannot deny it, and returns the answer, which
// passes. missing is the number of units that a call in the mode Partial was not granted. After an
// error, p has no Details, and the call counts as denied by the limits of p.
func (s *steps) chargeApart(p *Part, is *piece, missing int64) (d limit.Decision, err error) {
	a, n := &is.ask, len(p.Limits.Clauses)
	if missing > 0 {
		asked := p.Quantity
		p.Quantity -= missing
		_ = s.fillPart(p, false) // there is no error, because the same clauses were filled for more units before
		s.number(p)
		p.Quantity = asked
	}
	s.about(a, p, p.from, n)
	s.store.Decide(a)
	denied := a.Err != nil || a.Refused || a.Missing > 0
	is.reserves = s.reserveNothing(a, &is.free)
	if a.Err == nil {
		d, p.Details, is.noted = a.Binding(), s.keep(p.from, a.Details...), true
		pass(&d)
		passEach(a.Details)
	}
	if !a.Repeats() {
		is.passes, is.answers, is.told = true, true, p.Details
		s.tryPart(p, is, denied)
	}
	return d, a.Err
}

// chargeDenied charges p for a call that other parts deny. p is a part that cannot deny the call and that charges
// denied calls.
func (s *steps) chargeDenied(p *Part, is *piece) {
	a := &is.ask
	s.about(a, p, p.from, len(p.Limits.Clauses))
	if s.store.Decide(a); a.Err == nil {
		is.told = a.Details
	}
	s.tryPart(p, is, a.Err != nil || a.Refused)
}

// passEach turns the decisions of details into decisions on a call that passes.
func passEach(details []limit.Decision) {
	for i := range details {
		pass(&details[i])
	}
}

// passAll decides a call that no part can deny. It returns the error of the store if no part could
// be decided.
func (s *steps) passAll(parts []Part) (err error) {
	s.whole = limit.Decision{RetryAfter: limit.NoRetry}
	decided := false
	for i := range parts {
		is, failed := s.chargeApart(&parts[i], &s.pieces[i], 0)
		if failed != nil {
			err = failed
			continue
		}
		if !decided || is.Remaining < s.whole.Remaining {
			s.whole.Limit, s.whole.Remaining = is.Limit, is.Remaining
		}
		s.whole.ResetAfter = max(s.whole.ResetAfter, is.ResetAfter)
		decided = true
	}
	if decided {
		return nil
	}
	return err
}

// decideAny decides the call under parts, of which the first that passes is charged, and sets x.
func (s *steps) decideAny(parts []Part, x *severally) {
	*x = severally{}
	if _, x.at, x.err = s.prepare(parts, false); x.err != nil {
		return
	}
	for i := range parts {
		is, err := s.chargeFirst(&parts[i], &s.pieces[i])
		if err != nil {
			x.at, x.err = i, err
			return
		}
		if i == 0 || is.Refused == 0 || sooner(&is, &s.whole) {
			s.whole = is
		}
		if is.Refused == 0 {
			return
		}
	}
}

// chargeFirst decides the call for p alone, of the parts that decideAny tries.
func (s *steps) chargeFirst(p *Part, is *piece) (limit.Decision, error) {
	a, n := &is.ask, len(p.Limits.Clauses)
	if is.blocked = p.Blocked(); is.blocked {
		p.Details = s.main.Details[p.from : p.from+n]
		s.block(&p.Lookup, p.Details)
		return p.Details[0], nil
	}
	s.about(a, p, p.from, n)
	if s.store.Decide(a); a.Err != nil {
		return limit.Decision{}, a.Err
	}
	p.Details, is.noted = a.Details, true
	d, denied := a.Binding(), a.Refused
	if is.passes = p.Lenient(); is.passes {
		p.Details = s.keep(p.from, a.Details...)
		pass(&d)
		passEach(a.Details)
	}
	if !a.Repeats() {
		s.countDenial(&p.Lookup, &d)
		is.told = p.Details
	}
	is.answers, is.denies = true, d.Refused != 0
	s.tryPart(p, is, denied)
	return d, nil
}

// sooner reports whether a call that is denied by a would pass before one that is denied by b.
func sooner(a, b *limit.Decision) bool {
	return a.RetryAfter != limit.NoRetry && (b.RetryAfter == limit.NoRetry || a.RetryAfter < b.RetryAfter)
}

// reserveAll completes the clauses of parts, which were filled in, for a reservation. It sets the numbers of the
// clauses, and at the first key with a window or a bucket the link to all other keys. That key belongs to the first
// part, or to a later one if the limits before it are NONE. The errors are [reservation.ErrFamily],
// [reservation.ErrFirst] and [reservation.ErrKeys]; at is the index of the part that the error is about.
func (s *steps) reserveAll(parts []Part) (at int, err error) {
	var first []byte
	linking, of := 0, uint8(0)
	s.linked = s.linked[:0]
	for i := range parts {
		p := &parts[i]
		if !reservable(p.Limits) {
			return i, reservation.ErrFamily
		}
		p.number = of
		of += s.number(p)
		for _, c := range s.main.Clauses[p.from : p.from+len(p.Limits.Clauses)] {
			if c.Unlimited {
				continue
			}
			if first == nil && c.Lease == nil {
				first, linking = c.Key, i
				continue
			}
			s.linked = append(s.linked, c.Key)
		}
		if first == nil && len(s.linked) > 0 {
			return 0, reservation.ErrFirst
		}
	}
	if first == nil {
		return 0, nil // the call leaves nothing for others
	}
	if s.linked = append(s.linked, first); reservation.CheckKeys(s.linked) != nil {
		return 0, reservation.ErrKeys
	}
	for i := range parts {
		parts[i].of = of
	}
	parts[linking].link, parts[linking].keys = true, s.linked[:len(s.linked)-1]
	return 0, nil
}

// number sets Index of each window and bucket among the clauses of p, whose other fields must be set, and returns how
// many there are.
func (s *steps) number(p *Part) (n uint8) {
	for i := range p.Limits.Clauses {
		if c := &s.main.Clauses[p.from+i]; c.Lease == nil && !c.Unlimited {
			c.Index = p.number + n
			n++
		}
	}
	return n
}

// prepare fills in the clauses of all parts that no block denies. The clauses of the parts that can
// deny the call come first; strict is the number of these clauses. together says that the parts are
// charged all or none: a part whose quantity is 0 is then left alone, unless the call only looks.
func (s *steps) prepare(parts []Part, together bool) (strict, at int, err error) {
	n, looks := 0, together
	s.beginPieces(len(parts))
	for i := range parts {
		n += len(parts[i].Limits.Clauses)
		looks = looks && parts[i].Looks()
	}
	s.main.Grow(n)
	n = 0
	for _, lenient := range [...]bool{false, true} {
		for i := range parts {
			p := &parts[i]
			if p.Lenient() != lenient {
				continue
			}
			p.Details, p.from = nil, n
			if n += len(p.Limits.Clauses); p.Blocked() {
				continue
			}
			if together && !looks && p.Looks() {
				p.Quantities = noQuantities[:len(p.Limits.Clauses)]
			}
			if err = s.fillPart(p, looks || !together && p.Looks()); err != nil {
				return 0, i, err
			}
		}
		if !lenient {
			strict = n
		}
	}
	return strict, 0, nil
}

// fillPart fills in the clauses of p. For looks see fill.
func (s *steps) fillPart(p *Part, looks bool) error {
	if !p.fits(p.Limits) {
		return ErrQuantities
	}
	if err := p.check(p.Limits); err != nil {
		return err
	}
	return s.fill(&p.Lookup, p.Limits, 0, &s.main, p.from, looks)
}

// about makes a an ask about n clauses that were filled in, from the index from on. It takes the
// options of the call from p.
func (s *steps) about(a *decide.Ask, p *Part, from, n int) {
	a.DB, a.Family, a.Key, a.Err, a.Foreign, a.Lapsed = p.DB, decide.Several, nil, nil, 0, 0
	a.Refused, a.Missing, a.Partial, a.ID, a.Reserve = false, 0, p.Mode == Partial && p.Quantity > 0, p.ID, p.terms()
	a.Clauses, a.Details = s.main.Clauses[from:from+n], s.main.Details[from:from+n]
	a.Keep, a.Rank = 0, 0
}

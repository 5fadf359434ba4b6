package ratelimit

import (
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/reservation"
)

// steps takes the steps that decide a call: it makes the asks and has its store decide them. It counts nothing and
// sends no notices. So the steps can be taken again on another state, and a [Decider] then counts the outcome of the
// last ones.
type steps struct {
	service *Service
	store   Store
	keys    keys
	room    clause.Room    // memory for a boosted clause
	main    clause.Memory  // memory for the clauses of the limits in force
	whole   limit.Decision // the decision on the call, if its ask does not have it
	// seldom is memory that few calls need; nil until a call has needed it: see rarely.
	seldom *rare
	// kept has the decisions of the limits on the clauses of a call that passes although the limits may deny it.
	kept []limit.Decision
	// pieces has the outcomes of a call under several policies for each of them, and linked has the keys of its
	// reservation.
	pieces []piece
	linked [][]byte
}

// rare is the memory for a candidate, for bans and for a reservation without units. It is larger than the rest of
// steps.
type rare struct {
	tried  clause.Memory // memory for the clauses of a candidate
	second decide.Ask    // the ask about the limits of a candidate
	free   decide.Ask    // the ask of a reservation without units, for a call under one policy
	// spare has the decisions of a reservation without units.
	spare [policy.MaxClauses]limit.Decision
	// bans is the ask about the bans of a key, with the memory of its key.
	bans decide.Ask
}

// rarely returns the memory that few calls need, and allocates it at its first call.
func (s *steps) rarely() *rare {
	if s.seldom == nil {
		s.seldom = new(rare)
	}
	return s.seldom
}

// endBatch drops the references of the calls of the batch, and frees the memory of calls with many clauses. dropped
// says that the clauses may refer to a buffer of keys that was dropped.
func (r *rare) endBatch(dropped bool) {
	r.tried.Trim()
	r.second.Forget()
	r.free.Forget()
	if dropped {
		r.tried.Forget()
	}
}

// outcome is the result of the steps of a call.
type outcome struct {
	answer Answer
	// decided has the decisions of the limits on the clauses, if a notice or the answer may need them.
	decided []limit.Decision
	// denied says that the limits in force deny the call, even if it passes.
	denied bool
	// free says that there is a reservation without units; its ask is rare.free.
	free bool
	// tries says that the candidate of the policy has decided the call, too, with the result trial.
	tries bool
	trial trial
}

// trial is the decision of the candidate of a policy.
type trial struct {
	// refused says that the candidate denies the call. lapsed is the field Lapsed of its ask.
	refused bool
	lapsed  uint32
}

// decide decides the call that l has looked up, and sets x. No block may deny the call. decide uses a; h says how the
// ask differs from that of Ask. It returns the errors of [Decider.Ask] and of the store.
func (s *steps) decide(l *Lookup, h how, a *decide.Ask, x *outcome) error {
	if err := s.ask(l, l.Limits, h, &s.main, a); err != nil {
		return err
	}
	if s.store.Decide(a); a.Err != nil {
		return a.Err
	}
	if l.Lenient() {
		x.free = s.reserveNothing(a, &s.rarely().free)
	}
	s.conclude(l, a, x)
	if x.tries = l.tries() && !a.Repeats(); x.tries {
		x.trial = s.try(l)
	}
	return nil
}

// conclude sets x to the answer to the call after its ask a was decided without an error. An exemption or a shadow
// policy turns a denial into a pass. It changes the decisions in a, too, and has the store count a denial for the next
// ban, unless the call has waited.
func (s *steps) conclude(l *Lookup, a *decide.Ask, x *outcome) {
	x.answer = s.answer(a)
	x.denied = x.answer.Decision.Refused != 0
	x.decided = x.answer.Details
	switch notifies := l.Rules.Main.Notify > 0; {
	case x.decided == nil && (notifies || l.Lenient()):
		x.decided = s.keep(0, *x.answer.Decision)
	case l.Lenient():
		x.decided = s.keep(0, x.decided...)
	}
	if l.Lenient() {
		pass(x.answer.Decision)
		passEach(x.answer.Details)
		x.answer.Details = x.decided
	}
	if !a.Repeats() && !l.waited {
		s.countDenial(l, x.answer.Decision)
	}
}

// keep copies all, decisions of the limits on clauses, to the memory of s from the index at on. The copies are valid
// until the next call.
func (s *steps) keep(at int, all ...limit.Decision) []limit.Decision {
	end := at + len(all)
	if end > len(s.kept) {
		s.kept = make([]limit.Decision, max(end, policy.MaxClauses)) // append may move the memory; earlier copies remain valid
	}
	copy(s.kept[at:], all)
	return s.kept[at:end:end]
}

// answer returns the decision on a, and those on its clauses.
func (s *steps) answer(a *decide.Ask) Answer {
	if a.Family != decide.Several {
		return Answer{Decision: &a.Decision}
	}
	s.whole = a.Binding()
	return Answer{&s.whole, a.Details}
}

// reserveNothing records a reservation without units if a, a decided ask, is a reservation that the limits have denied
// although the call passes. So a later settlement finds the reservation. It reports whether it has recorded one, and
// uses b for the ask.
func (s *steps) reserveNothing(a, b *decide.Ask) bool {
	if a.Reserve.TTL == 0 || a.Err != nil || !a.Refused || a.Full || a.Repeats() {
		return false
	}
	*b = *a
	b.Reserve.Free, b.Details, b.Lapsed = true, s.rarely().spare[:len(a.Details)], 0
	s.store.Decide(b)
	return b.Err == nil
}

// try decides the call under the policy's candidate. An error of the candidate counts as a denial. A reservation is
// never settled at a candidate: the candidate charges the estimate for good, and does not remember the call.
func (s *steps) try(l *Lookup) (t trial) {
	if l.reserves() {
		was := l.Call
		l.Reserve, l.ID = reservation.Terms{}, idempotency.Call{}
		defer func() { l.Call = was }()
	}
	r := s.rarely()
	a := &r.second
	t.refused = true
	limits := l.Rules.Candidate.Limits
	if s.candidateBan(l) != 0 || s.ask(l, limits, candidate, &r.tried, a) != nil {
		return t
	}
	s.store.Decide(a)
	whole := a.Whole()
	if t.refused = a.Err != nil || whole.Refused != 0; a.Err != nil {
		return t
	}
	if t.lapsed = a.Lapsed; l.bans(limits, &whole) {
		s.store.Decide(s.banAsk(l, limits, true, true))
	}
	return t
}

// endBatch frees the memory of calls with many clauses or long keys. No ask may be in use.
func (s *steps) endBatch() {
	s.main.Trim()
	if len(s.kept) > policy.MaxClauses {
		s.kept = nil
	}
	for i := range s.pieces {
		s.pieces[i].ask.Forget()
		s.pieces[i].free.Forget()
		s.pieces[i].told = nil
	}
	s.pieces = s.pieces[:0]
	clear(s.linked[:cap(s.linked)])
	dropped := s.keys.endBatch()
	if dropped {
		s.main.Forget()
	}
	if s.seldom != nil {
		s.seldom.endBatch(dropped)
	}
}

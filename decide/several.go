package decide

import (
	"slices"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
)

// Rounds decides the clauses of an RL.MULTI at one instant, so that all are charged or none. One
// goroutine reuses it for one ask after another. The caller passes the entries of all clauses in
// each round:
//
//	for s.Start(a, now); s.Round(); {
//		for i := range a.Clauses { // in any order
//			if !s.Judge(i, entryOf(i)) {
//				break
//			}
//		}
//	}
//	err := s.End()
//
// This loop fills in the answer. If there is no error and s.Changes is true, the caller then
// decides each clause once more with [Rounds.Again]. After each of these calls it makes the change
// of the embedded [Plan], which is the plan of the clause that was decided last. Rounds keeps no
// other plans, because there may be thousands of clauses, and deciding again is cheaper.
// [Rounds.All] is this loop for entries in memory.
//
// An [Ask.Partial] is decided in one round if all clauses grant all units. Otherwise there is a
// second round, which grants as many units as all clauses can grant, or refuses the call if that is
// none.
//
// A refused RL.MULTI stores what the refusals of its clauses as single calls would store: the
// changed rate of a bucket, or a new key because of INIT. It charges the clauses with [Clause.Counts].
type Rounds struct {
	Plan
	// Changes is true if the plan of at least one clause is not Keep.
	Changes bool

	ask *Ask
	now limit.Instant
	as  manner // the manner of the clauses in the present round
	// id is nil if the call has no token, or only looks. Otherwise the first round is searching. If
	// a key remembers the call, found is true, and again is the record of the call at the first
	// such key; if not, first is the manner of the next round.
	id     *idempotency.Call
	first  manner
	found  bool
	again  idempotency.Record
	begun  bool  // whether the first round has begun
	unfit  bool  // whether a clause does not fit the value at its key
	asked  int64 // the number of units that each clause of a Partial asks for
	least  int64 // the number of units that every clause of a Partial judged so far can grant
	failed int   // the index of the first clause with an error; err is that error
	err    error
}

// Start begins the decision of a at now, and resets the answer of a. a.Details must have as many
// elements as a.Clauses. The keys of the clauses must differ.
func (s *Rounds) Start(a *Ask, now limit.Instant) {
	s.ask, s.now, s.begun, s.as = a, now, false, charging
	if slices.ContainsFunc(a.Clauses, func(c Clause) bool { return c.Peek }) {
		s.as = peeking
	} else if a.Partial {
		if s.asked = a.Units(); s.asked > 0 {
			s.as, s.least = sharing, s.asked
		}
	}
	if a.Reserve.Free && a.Reserve.TTL > 0 {
		s.as = noting
	}
	a.Now, a.Refused, a.Missing, a.Foreign = now, false, 0, 0
	if s.id = nil; a.ID.Token != nil {
		if a.Repeated, a.Forgotten, a.Full = false, 0, false; !a.OnlyLooks() {
			s.id, s.found, s.first, s.as = &a.ID, false, s.as, searching
		}
	}
}

// Round begins the next round and returns true if the caller has to judge each clause in it. It
// returns false if the decision is complete. If a clause is refused in the first round and the call
// is not a Partial, there is a second round, which charges only the clauses with Counts. A call with a
// token has one more round at the beginning.
func (s *Rounds) Round() bool {
	switch {
	case !s.begun:
		s.begun = true
	case s.err != nil || s.unfit:
		return false
	case s.as == searching && s.found:
		if s.as, s.ask.Repeated = repeating, true; s.ask.Partial {
			s.ask.Missing = s.again.Missing
		} else {
			s.ask.Refused = s.again.Missing > 0 // a remembered denial was charged
		}
	case s.as == searching:
		s.as = s.first
	case s.as == charging && s.ask.Refused:
		s.as = denied
	case s.as == sharing && s.least == 0:
		s.as = exhausted
		s.ask.Refuse()
	case s.as == sharing && s.least < s.asked:
		s.as, s.ask.Missing = granting, s.asked-s.least
	default:
		return false
	}
	s.Changes, s.unfit, s.failed, s.err = false, false, len(s.ask.Clauses), nil
	return true
}

// Judge decides clause i on e, the entry of the clause's key, and writes the answer to the ask's
// Details. It returns false if the clause does not fit the key. Then the caller must end the round,
// since the call fails.
func (s *Rounds) Judge(i int, e *entry.Entry) bool {
	c, d := &s.ask.Clauses[i], &s.ask.Details[i]
	if s.unfit = !c.fits(e.Kind.Plain()); s.unfit {
		return false
	}
	if c.Unlimited {
		*d = unlimited
		return true
	}
	if s.as == searching {
		if err := s.search(e); err != nil && s.err == nil {
			s.err = err
		}
		return true
	}
	if err := s.decide(d, e, c); err != nil {
		if i < s.failed {
			s.err, s.failed = err, i
		}
		return true
	}
	if s.ask.Retained != nil {
		s.ask.Retained[i] = Retained{}
		s.ask.Retained[i].read(e, s.now)
	}
	s.Changes = s.Changes || s.Action != Keep
	if s.Foreign && s.as != peeking && c.takes() {
		s.ask.Foreign = i + 1
	}
	switch {
	case s.as == repeating || s.as == noting:
	case s.as != sharing:
		s.ask.Refused = s.ask.Refused || !d.Allowed()
	case c.units() != nil:
		s.least = min(s.least, s.asked-d.Refused)
	case !d.Allowed():
		s.least = 0
	}
	return true
}

// decide decides the clause c on e in the manner of the round, writes the answer to d and fills in
// the plan.
func (s *Rounds) decide(d *limit.Decision, e *entry.Entry, c *Clause) error {
	s.counted = false
	if c.Unlimited {
		s.remembers = false
		return s.decideClause(d, e, s.now, c, peeking)
	}
	if s.id != nil || e.Kind.Remembers() {
		return s.decideRemembering(d, e, c)
	}
	s.remembers = false
	return s.decideState(d, e, c)
}

// decideState does what decide does, for an entry that remembers no calls and for a call without a
// token.
func (s *Rounds) decideState(d *limit.Decision, e *entry.Entry, c *Clause) error {
	if s.as == sharing || s.as == granting || s.as == exhausted {
		return s.decidePart(d, e, s.now, c, s.as, s.least)
	}
	if s.as == denied && c.counts() {
		return s.chargeDenied(d, e, s.now, c)
	}
	return s.judge(d, e, s.now, c, s.as)
}

// End returns the error of the call: [limit.ErrWrongType] if a clause does not fit its key,
// [ErrReused] if a key remembers a call with the same token and other arguments, otherwise the
// error of the first clause that has one, or nil. With an error it sets s.Changes to false.
func (s *Rounds) End() error {
	if s.unfit {
		s.err = limit.ErrWrongType
	}
	s.Changes = s.Changes && s.err == nil
	return s.err
}

// Again decides clause i on e once more, as in the last round, and fills in the plan of the clause.
// It does not change the answer, except that it counts the calls that are forgotten.
func (s *Rounds) Again(i int, e *entry.Entry) error {
	var d limit.Decision
	err := s.decide(&d, e, &s.ask.Clauses[i])
	if err == nil && s.remembers && s.memory.after {
		if s.id != nil {
			s.ask.forgot(&s.memory.records)
		}
		if s.holds {
			s.ask.Lapsed += s.holding.lapsed
		}
	}
	return err
}

// All decides a at now. entryOf returns the entry of clause i, of kind [entry.None] if there is no
// key; it may be called twice for a clause. The requirements of [Rounds.Start] hold. It returns the
// error of [Rounds.End].
func (s *Rounds) All(a *Ask, now limit.Instant, entryOf func(i int) *entry.Entry) error {
	for s.Start(a, now); s.Round(); {
		for i := range a.Clauses {
			if !s.Judge(i, entryOf(i)) {
				break
			}
		}
	}
	return s.End()
}

// Forget drops the references to the ask and to its bytes.
func (s *Rounds) Forget() {
	s.ask, s.id = nil, nil
	s.Plan.Forget()
}

// Clause decides clause i of a alone, on e at now, with as many units as a was granted. a is a
// [Several] that was decided and granted before. Clause writes the answer to a.Details and fills in
// the plan.
func (p *Plan) Clause(i int, e *entry.Entry, now limit.Instant, a *Ask) error {
	if a.Partial && a.Missing > 0 {
		return p.decidePart(&a.Details[i], e, now, &a.Clauses[i], granting, a.Granted())
	}
	return p.decideClause(&a.Details[i], e, now, &a.Clauses[i], charging)
}

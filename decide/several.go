package decide

import (
	"slices"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// Rounds decides the clauses of an RL.MULTI at one instant: all are charged or none. One goroutine reuses
// it for one ask after another. The caller passes each entry in each round:
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
// That fills in the answer. If there is no error and s.Changes is true, the caller decides each clause
// once more with [Rounds.Again] and applies the result as the plan of one ask: Rounds is the [Plan] of the
// clause that was decided last. It keeps no other plans, because there may be thousands of clauses, and
// deciding again is cheaper. [Rounds.All] decides the clauses for entries in memory.
//
// An [Ask.Partial] is decided in one round if all clauses grant all units. Otherwise there is a
// second round: with as many units as all of them can grant, or as refused.
//
// A refused call stores what the refusal of a single clause stores: a changed rate of a bucket, or
// a key with INIT.
type Rounds struct {
	Plan
	// Changes reports whether a clause has something to store, or to remove.
	Changes bool

	ask    *Ask
	now    limit.Instant
	as     manner
	begun  bool  // the first round has begun
	unfit  bool  // a clause does not fit its key
	asked  int64 // units of a Partial
	least  int64 // units that all clauses of a Partial can grant
	failed int   // index of the first clause with an error, which is err
	err    error
}

// Start begins with a, whose Details must have room for all Clauses. The keys must differ.
func (s *Rounds) Start(a *Ask, now limit.Instant) {
	s.ask, s.now, s.begun, s.as = a, now, false, charging
	if slices.ContainsFunc(a.Clauses, func(c Clause) bool { return c.Peek }) {
		s.as = peeking
	} else if a.Partial {
		if s.asked = a.Units(); s.asked > 0 {
			s.as, s.least = sharing, s.asked
		}
	}
	a.Now, a.Refused, a.Missing, a.Foreign = now, false, 0, 0
}

// Round reports whether each clause has to be judged, for the first time or again. There are two
// rounds if a clause that was to be charged is refused: the second one charges none.
func (s *Rounds) Round() bool {
	switch {
	case !s.begun:
		s.begun = true
	case s.err != nil || s.unfit:
		return false
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

// Judge decides clause i on the entry of its key and writes the answer to the ask's Details. It
// returns false if the round may end early, because nothing will be decided.
func (s *Rounds) Judge(i int, e *entry.Entry) bool {
	c, d := &s.ask.Clauses[i], &s.ask.Details[i]
	if s.unfit = !c.fits(e.Kind); s.unfit {
		return false
	}
	if err := s.decide(d, e, c); err != nil {
		if i < s.failed {
			s.err, s.failed = err, i
		}
		return true
	}
	s.Changes = s.Changes || s.Action != Keep
	if s.Foreign && s.as != peeking && c.takes() {
		s.ask.Foreign = i + 1
	}
	switch {
	case s.as != sharing:
		s.ask.Refused = s.ask.Refused || !d.Allowed()
	case c.units() != nil:
		s.least = min(s.least, s.asked-d.Refused)
	case !d.Allowed():
		s.least = 0
	}
	return true
}

// decide decides a clause in the manner of the round.
func (s *Rounds) decide(d *limit.Decision, e *entry.Entry, c *Clause) error {
	if s.as >= sharing {
		return s.decidePart(d, e, s.now, c, s.as, s.least)
	}
	return s.decideClause(d, e, s.now, c, s.as)
}

// End returns the error of the call: [limit.ErrWrongType] if a clause does not fit its key,
// otherwise the error of the first clause with one.
func (s *Rounds) End() error {
	if s.unfit {
		s.err = limit.ErrWrongType
	}
	s.Changes = s.Changes && s.err == nil
	return s.err
}

// Again decides clause i again, as in the last round, for its plan. It does not change the answer.
func (s *Rounds) Again(i int, e *entry.Entry) error {
	var d limit.Decision
	return s.decide(&d, e, &s.ask.Clauses[i])
}

// All decides a, whose Details must have room for all Clauses, on entries in memory: entryOf
// returns the entry of a clause, of kind [entry.None] if there is none.
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

// Forget drops the ask.
func (s *Rounds) Forget() {
	s.ask = nil
	s.Plan.Forget()
}

// Clause decides clause i of a, which was granted, again and alone, as if it were charged by
// itself, and writes the answer to the Details.
func (p *Plan) Clause(i int, e *entry.Entry, now limit.Instant, a *Ask) error {
	if a.Partial && a.Missing > 0 {
		return p.decidePart(&a.Details[i], e, now, &a.Clauses[i], granting, a.Granted())
	}
	return p.decideClause(&a.Details[i], e, now, &a.Clauses[i], charging)
}

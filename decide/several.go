package decide

import (
	"slices"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Rounds decides the clauses of an RL.MULTI at one instant: all are charged or none. It is
// scratch of one goroutine, for one ask after another, and does not know where the entries
// are. Who has them shows each entry in each round:
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
// That fills in the answer. If there is no error and s.Changes, what is to be stored is
// found by deciding each clause once more, [Rounds.Again], and then applied as the plan of
// one ask is: Rounds is the [Plan] of the clause that was decided last. Plans are not kept,
// for there may be thousands of clauses, and deciding takes less than remembering.
// [Rounds.All] does the first half for entries that lie in memory.
//
// A refused call still stores what a refusal of a clause by itself stores: a changed rate
// of a bucket, a key with INIT.
type Rounds struct {
	Plan
	// Changes reports whether a clause has something to store, or to remove.
	Changes bool

	ask    *Ask
	now    limit.Instant
	as     manner
	begun  bool // of the rounds
	unfit  bool // a clause is not about what its key holds
	failed int  // the first clause that has an error, which is err
	err    error
}

// manner is how clauses are decided.
type manner uint8

const (
	charging manner = iota
	// peeking answers and plans nothing.
	peeking
	// denied answers as peeking does and plans what a refusal stores.
	denied
)

// Start begins with a, whose Details have room for all Clauses. The keys must differ.
func (s *Rounds) Start(a *Ask, now limit.Instant) {
	s.ask, s.now, s.begun, s.as = a, now, false, charging
	if slices.ContainsFunc(a.Clauses, func(c Clause) bool { return c.Peek }) {
		s.as = peeking
	}
	a.Now, a.Refused = now, false
}

// Round reports whether each clause is to be judged, for the first time or once more. There
// are two rounds if a clause is refused that was to be charged: then the others are not.
func (s *Rounds) Round() bool {
	switch {
	case !s.begun:
		s.begun = true
	case s.as == charging && s.ask.Refused && s.err == nil && !s.unfit:
		s.as = denied
	default:
		return false
	}
	s.Changes, s.unfit, s.failed, s.err = false, false, len(s.ask.Clauses), nil
	return true
}

// Judge decides clause i on what its key holds and notes its answer in the ask's Details.
// It returns false if the round may end, since nothing will be decided.
func (s *Rounds) Judge(i int, e *entry.Entry) bool {
	c, d := &s.ask.Clauses[i], &s.ask.Details[i]
	if s.unfit = !c.fits(e.Kind); s.unfit {
		return false
	}
	if err := s.decideClause(d, e, s.now, c, s.as); err != nil {
		if i < s.failed {
			s.err, s.failed = err, i
		}
		return true
	}
	s.ask.Refused = s.ask.Refused || !d.Allowed()
	s.Changes = s.Changes || s.Action != Keep
	return true
}

// End returns the error of the call: [limit.ErrWrongType] if a clause does not fit its key,
// else that of the first clause that has one.
func (s *Rounds) End() error {
	if s.unfit {
		s.err = limit.ErrWrongType
	}
	s.Changes = s.Changes && s.err == nil
	return s.err
}

// Again decides clause i once more, as in the last round, for its plan. Its answer stays.
func (s *Rounds) Again(i int, e *entry.Entry) error {
	var d limit.Decision
	return s.decideClause(&d, e, s.now, &s.ask.Clauses[i], s.as)
}

// All decides a, whose Details have room for all Clauses, on entries that lie in memory:
// entryOf returns that of a clause, of kind [entry.None] if there is none.
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

// Clause decides clause i of a by itself, as if it were charged alone, and notes its answer
// in the Details.
func (p *Plan) Clause(i int, e *entry.Entry, now limit.Instant, a *Ask) error {
	return p.decideClause(&a.Details[i], e, now, &a.Clauses[i], charging)
}

// fits reports whether what a key holds is what its clause is about.
func (c *Clause) fits(k entry.Kind) bool {
	return k == entry.None || c.Window != nil && k.IsWindow() || c.Bucket != nil && k.IsBucket() ||
		c.Lease != nil && k.IsLease() || c.Quota != nil && (k == entry.Cell || k == entry.String)
}

// decideClause is what One is for an ask.
func (p *Plan) decideClause(d *limit.Decision, e *entry.Entry, now limit.Instant, c *Clause, as manner) (err error) {
	switch {
	case c.Window != nil:
		was := c.Window.Charge
		if as != charging {
			c.Window.Charge = slidingwindow.Peek
		}
		err = p.decideWindow(d, e, now, c.Window)
		c.Window.Charge = was
	case c.Bucket != nil:
		was := c.Bucket.Charge
		if as == peeking {
			c.Bucket.Charge = tokenbucket.Peek
		}
		c.Bucket.Denied = as == denied
		err = p.decideBucket(d, e, now, c.Bucket)
		c.Bucket.Charge, c.Bucket.Denied = was, false
	case c.Lease != nil:
		was := c.Lease.Peek
		c.Lease.Peek = was || as != charging
		err = p.decideLease(d, e, now, c.Lease)
		c.Lease.Peek = was
	default:
		err = p.decideCell(d, e, now, c.Quota, c.Quantity)
		if err == nil && as != charging {
			p.leaveCell(d, e, now, c.Quota)
		}
	}
	if as == peeking {
		p.Action = Keep
	}
	return err
}

// leaveCell has a cell stay as it is, and d say so.
func (p *Plan) leaveCell(d *limit.Decision, e *entry.Entry, now limit.Instant, q *gcra.Quota) {
	p.Action = Keep
	tat, _ := entry.StoredTAT(e) // it could be read just now
	var is limit.Decision
	gcra.DecideInto(&is, tat, now, q, 0)
	d.Remaining, d.ResetAfter = is.Remaining, is.ResetAfter
}

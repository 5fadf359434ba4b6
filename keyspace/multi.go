package keyspace

import (
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Clause is one limit of an RL.MULTI: a key and exactly one of the three calls.
type Clause struct {
	Key      []byte
	Quota    *gcra.Quota // with Quantity
	Quantity int64
	Window   *slidingwindow.Call
	Bucket   *tokenbucket.Call
	// Peek only asks. If one clause does, the whole call does.
	Peek bool
}

// clausePlan is what was decided about one clause.
type clausePlan struct {
	hash   uint64
	next   limit.Instant // of a cell, with write
	write  bool
	window slidingwindow.Plan
	bucket tokenbucket.Plan
}

// maxPlans is how many clause plans a view keeps for the next call.
const maxPlans = 32

// Multi decides every clause at one instant and charges all of them or none. The
// keys must differ. details, as long as clauses, receives each clause's own answer:
// what it did, if all passed, else what it would answer to a peek. It reports
// whether any clause was refused.
//
// A refused call still stores what a refusal of a clause by itself stores: a changed
// rate of a bucket, a key with INIT. Nothing at all is stored on an error, which is
// limit.ErrWrongType, limit.ErrNotInteger, limit.ErrFull or that of a decision; the
// kinds of all keys are checked before anything is decided.
func (v *View) Multi(db int, clauses []Clause, details []limit.Decision) (refused bool, err error) {
	v.plan(clauses)
	var set shardSet
	peek := false
	for i := range clauses {
		set.add(int(v.plans[i].hash >> v.ks.shift))
		peek = peek || clauses[i].Peek
	}
	defer v.releaseHere(v.holdHere(&set))
	defer v.forgetPlans()

	if err := v.checkKinds(db, clauses); err != nil {
		return false, err
	}
	as := charging
	if peek {
		as = peeking
	}
	if refused, err = v.decideAll(db, clauses, details, as); err != nil || peek {
		return refused, err
	}
	if refused {
		if _, err = v.decideAll(db, clauses, details, denied); err != nil {
			return true, err
		}
	}
	return refused, v.applyAll(db, clauses)
}

func (v *View) plan(clauses []Clause) {
	for len(v.plans) < len(clauses) {
		v.plans = append(v.plans, clausePlan{})
	}
	for i := range clauses {
		v.plans[i].hash = v.ks.hash(clauses[i].Key)
	}
}

func (v *View) forgetPlans() {
	if len(v.plans) > maxPlans {
		v.plans = nil
	}
}

// findClause returns the place of a clause's key, whose shard is held. It is void
// after the next change, so it is looked up for every step.
func (v *View) findClause(db int, i int, c *Clause) (s *shard, p place) {
	h := v.plans[i].hash
	s = v.lock(h)
	s.find(&p, db, h, c.Key)
	return s, p
}

func (v *View) checkKinds(db int, clauses []Clause) error {
	for i := range clauses {
		c := &clauses[i]
		_, p := v.findClause(db, i, c)
		k := p.e.Kind
		switch {
		case k == None,
			c.Window != nil && k.isWindow(),
			c.Bucket != nil && k.isBucket(),
			c.Quota != nil && (k == Cell || k == String):
		default:
			return limit.ErrWrongType
		}
	}
	return nil
}

// manner is how the clauses are decided.
type manner uint8

const (
	charging manner = iota
	// peeking answers and plans nothing.
	peeking
	// denied answers as peeking does and plans what a refusal stores.
	denied
)

func (v *View) decideAll(db int, clauses []Clause, details []limit.Decision, as manner) (refused bool, err error) {
	for i := range clauses {
		_, p := v.findClause(db, i, &clauses[i])
		if details[i], err = v.decideClause(&p.e, &clauses[i], &v.plans[i], as); err != nil {
			return false, err
		}
		refused = refused || !details[i].Allowed()
	}
	return refused, nil
}

func (v *View) decideClause(e *Entry, c *Clause, plan *clausePlan, as manner) (limit.Decision, error) {
	switch {
	case c.Window != nil:
		was := c.Window.Charge
		if as != charging {
			c.Window.Charge = slidingwindow.Peek
		}
		err := decideWindow(e, v.now, c.Window, &plan.window)
		c.Window.Charge = was
		return plan.window.Decision, err
	case c.Bucket != nil:
		was := c.Bucket.Charge
		if as == peeking {
			c.Bucket.Charge = tokenbucket.Peek
		}
		c.Bucket.Denied = as == denied
		err := decideBucket(e, v.now, c.Bucket, &plan.bucket)
		c.Bucket.Charge, c.Bucket.Denied = was, false
		return plan.bucket.Decision, err
	}
	return v.decideCell(e, c, plan, as)
}

func (v *View) decideCell(e *Entry, c *Clause, plan *clausePlan, as manner) (d limit.Decision, err error) {
	tat, err := storedTAT(e)
	if err != nil {
		return d, err
	}
	plan.next, d, plan.write = gcra.Decide(tat, v.now, c.Quota, c.Quantity)
	if as != charging {
		plan.write = false
		_, is, _ := gcra.Decide(tat, v.now, c.Quota, 0)
		d.Remaining, d.ResetAfter = is.Remaining, is.ResetAfter
	}
	return d, nil
}

// applyAll stores what was planned, or nothing if memory is full and one of the
// keys would be new.
func (v *View) applyAll(db int, clauses []Clause) error {
	if v.refuses() && v.changesAny(clauses) {
		return limit.ErrNotKept
	}
	if v.ks.mem.full() {
		for i := range clauses {
			if _, p := v.findClause(db, i, &clauses[i]); p.old == None && v.plans[i].stores(&clauses[i], v.now) {
				return limit.ErrFull
			}
		}
	}
	for i := range clauses {
		s, p := v.findClause(db, i, &clauses[i])
		if err := v.applyClause(s, &p, &clauses[i], &v.plans[i]); err != nil {
			return err
		}
	}
	return nil
}

// changesAny reports whether the plans have any effect.
func (v *View) changesAny(clauses []Clause) bool {
	for i := range clauses {
		plan := &v.plans[i]
		switch c := &clauses[i]; {
		case c.Window != nil && plan.window.Action != slidingwindow.Keep,
			c.Bucket != nil && plan.bucket.Action != tokenbucket.Keep,
			c.Quota != nil && plan.write:
			return true
		}
	}
	return false
}

// stores reports whether the plan would make a key that does not exist.
func (plan *clausePlan) stores(c *Clause, now limit.Instant) bool {
	switch {
	case c.Window != nil:
		return plan.window.Action == slidingwindow.Store
	case c.Bucket != nil:
		return plan.bucket.Action == tokenbucket.Store
	}
	return plan.write && plan.next > now
}

func (v *View) applyClause(s *shard, p *place, c *Clause, plan *clausePlan) error {
	switch {
	case c.Window != nil:
		return v.applyWindow(s, p, c.Key, &plan.window, c.Window.Quantity < 0)
	case c.Bucket != nil:
		return v.applyBucket(s, p, c.Key, &plan.bucket)
	case plan.write:
		return s.putCell(p, c.Key, plan.next)
	}
	return nil
}

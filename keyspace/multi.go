package keyspace

import (
	"slices"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Multi decides every clause at one instant and charges all of them or none. The
// keys must differ. details, as long as clauses, receives each clause's own answer:
// what it did, if all passed, else what it would answer to a peek. It reports
// whether any clause was refused.
//
// A refused call still stores what a refusal of a clause by itself stores: a changed
// rate of a bucket, a key with INIT. Nothing at all is stored on an error, which is
// limit.ErrWrongType, limit.ErrNotInteger, limit.ErrFull or that of a decision; the
// kinds of all keys are checked before anything is decided.
func (v *Handle) Multi(db int, list []Clause, details []limit.Decision) (refused bool, err error) {
	all := &v.clauses
	*all = clauses{db: db, list: list, details: details}
	defer func() { *all = clauses{} }()
	var set shardSet
	all.spots, set = v.spread(len(list), all.key)
	peek := slices.ContainsFunc(list, func(c Clause) bool { return c.Peek })
	defer v.unlockHere(v.lockSpots(&set, all.spots, mostHeldClauses))

	as := charging
	if peek {
		as = peeking
	}
	if err = v.decideAll(all, as); err != nil || peek {
		return all.refused, err
	}
	if refused = all.refused; refused {
		as = denied
		if err = v.decideAll(all, as); err != nil {
			return true, err
		}
	}
	return refused, v.applyAll(all, as)
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

// decideAll decides all clauses. If one does not fit its key that is the error, else that
// of the first clause that has one.
func (v *Handle) decideAll(all *clauses, as manner) (err error) {
	all.refused, all.changes, all.grows = false, false, false
	fit, failed := true, len(all.list)
	v.visit(all.db, all.spots, all.key, func(i int, _ *shard, p *place) bool {
		c, plan := &all.list[i], &v.plan
		if fit = c.fits(p.e.Kind); !fit {
			return false
		}
		d, fault := v.decideClause(&p.e, c, plan, as)
		if fault != nil {
			if i < failed {
				err, failed = fault, i
			}
			return true
		}
		all.details[i] = d
		all.refused = all.refused || !d.Allowed()
		if as != peeking && plan.changes(c) {
			all.changes = true
			all.grows = all.grows || p.old == entry.None && plan.stores(c, v.now)
		}
		return true
	})
	if !fit {
		return limit.ErrWrongType
	}
	return err
}

func (v *Handle) decideClause(e *entry.Entry, c *Clause, plan *clausePlan, as manner) (limit.Decision, error) {
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

func (v *Handle) decideCell(e *entry.Entry, c *Clause, plan *clausePlan, as manner) (d limit.Decision, err error) {
	tat, err := entry.StoredTAT(e)
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

// applyAll stores what was decided, or nothing if memory is full and one of the keys
// would be new.
func (v *Handle) applyAll(all *clauses, as manner) (err error) {
	switch {
	case !all.changes:
		return nil
	case v.refuses():
		return limit.ErrNotKept
	case all.grows && v.full():
		return limit.ErrFull
	}
	was := v.slack
	v.slack = overdraft // none of them is refused any more
	defer func() { v.slack = was }()
	v.visit(all.db, all.spots, all.key, func(i int, s *shard, p *place) bool {
		c, plan := &all.list[i], &v.plan
		if _, err = v.decideClause(&p.e, c, plan, as); err == nil {
			err = v.applyClause(s, p, c, plan)
		}
		return err == nil
	})
	return err
}

func (v *Handle) applyClause(s *shard, p *place, c *Clause, plan *clausePlan) error {
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

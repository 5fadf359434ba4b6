package decide

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// One decides a on e at the instant now. e is the entry of a.Key; it is of kind [entry.None] if the
// key does not exist or has expired at now. One does not change e. It fills in the answer of a, and
// sets p to the change of the key.
//
// The error is [limit.ErrWrongType], [limit.ErrNotInteger], [ErrReused] or an error of the family.
// With an error nothing was decided, and the caller must leave the key as it is. The caller sets
// a.Err, since storing may fail as well. An ask about several entries is an error: [Rounds] decides
// a [Several], [Parts] a [Joint], and the caller itself carries out the operations Scan, Count and Flush of [Admin].
func (p *Plan) One(e *entry.Entry, now limit.Instant, a *Ask) error {
	a.Now, a.Foreign = now, 0
	if a.ID.Token != nil || e.Kind.Remembers() {
		return p.oneRemembering(e, now, a)
	}
	p.remembers = false
	return p.one(e, now, a)
}

// one decides like [Plan.One] on an entry that remembers no calls, as if a had no token.
func (p *Plan) one(e *entry.Entry, now limit.Instant, a *Ask) error {
	p.counted = false
	switch {
	case a.Counts:
		return p.oneCounting(e, now, a)
	case a.Keep > 0:
		return p.oneKeeping(e, now, a)
	}
	switch a.Family {
	case Cell:
		return p.decideCell(&a.Decision, e, now, &a.Quota, a.Quantity)
	case Window:
		err := p.decideWindow(&a.Decision, e, now, &a.Window)
		if p.Foreign && err == nil && !windowLooks(&a.Window) {
			a.Foreign = 1
		}
		return err
	case Bucket:
		err := p.decideBucket(&a.Decision, e, now, &a.Bucket)
		if p.Foreign && err == nil && !bucketLooks(&a.Bucket) {
			a.Foreign = 1
		}
		return err
	case Lease:
		return p.decideLease(&a.Decision, e, now, &a.Lease)
	case Cancel:
		p.cancelBucket(&a.Decision, e, now, &a.Bucket)
		return nil
	case Ban:
		return p.decideBan(&a.Decision, e, now, a.Bans, a.Denied)
	case Counter:
		return p.decideCounter(&a.Counted, e, now, &a.Counter)
	case Admin:
		return p.administer(e, now, &a.Admin, &a.Result)
	}
	p.Action = Keep
	return errNotOne
}

// oneCounting decides on an ask that is charged even if it is denied.
func (p *Plan) oneCounting(e *entry.Entry, now limit.Instant, a *Ask) error {
	a.Counts = false
	err := p.one(e, now, a)
	a.Counts = true
	if err != nil || a.Decision.Refused == 0 {
		return err
	}
	c := a.clause()
	if !c.counts() {
		return nil
	}
	return p.chargeDenied(&a.Decision, e, now, &c)
}

// oneKeeping decides on an ask that has to leave units for others.
func (p *Plan) oneKeeping(e *entry.Entry, now limit.Instant, a *Ask) (err error) {
	c := a.clause()
	if a.shared() > 0 {
		err = p.decidePart(&a.Decision, e, now, &c, sharing, 0)
	} else {
		err = p.judge(&a.Decision, e, now, &c, charging)
	}
	if p.Foreign && err == nil && c.takes() {
		a.Foreign = 1
	}
	return err
}

// clause returns the limiter of an ask of family Cell, Window, Bucket or Lease as a clause.
func (a *Ask) clause() (c Clause) {
	c.Key, c.Counts, c.Keep = a.Key, a.Counts, a.Keep
	switch a.Family {
	case Window:
		c.Window = &a.Window
	case Bucket:
		c.Bucket = &a.Bucket
	case Lease:
		c.Lease = &a.Lease
	default:
		c.Quota, c.Quantity = &a.Quota, a.Quantity
	}
	return c
}

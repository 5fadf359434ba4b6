package decide

import (
	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/counter"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Each of these methods decides one call of a family on e at now, writes the answer to d or r, and
// fills in the plan. After an error the caller must store nothing, and the answer has no meaning.

// decideCell decides CL.THROTTLE for quantity units with the quota q.
func (p *Plan) decideCell(d *limit.Decision, e *entry.Entry, now limit.Instant, q *gcra.Quota, quantity int64) error {
	p.Action, p.by, p.Foreign = Keep, Cell, false
	tat, err := entry.StoredTAT(e)
	if err != nil {
		return err
	}
	if next, write := gcra.DecideInto(d, tat, now, q, quantity); write {
		p.endCell(e, now, next)
	}
	return nil
}

// forceCell charges a cell for quantity units with the quota q, even beyond its limit.
func (p *Plan) forceCell(d *limit.Decision, e *entry.Entry, now limit.Instant, q *gcra.Quota, quantity int64) error {
	p.Action, p.by, p.Foreign = Keep, Cell, false
	tat, err := entry.StoredTAT(e)
	if err != nil {
		return err
	}
	next, write, err := gcra.ForceInto(d, tat, now, q, quantity)
	if write {
		p.endCell(e, now, next)
	}
	return err
}

// shareCell takes quantity units, or as many as are available. quantity must be positive. d.Refused
// is the number of units that were not granted.
func (p *Plan) shareCell(d *limit.Decision, e *entry.Entry, now limit.Instant, q *gcra.Quota, quantity int64) error {
	p.Action, p.by, p.Foreign = Keep, Cell, false
	tat, err := entry.StoredTAT(e)
	if err != nil {
		return err
	}
	granted := min(quantity, gcra.Free(tat, now, q))
	if granted == 0 {
		gcra.DecideInto(d, tat, now, q, 1)
		d.Refused = quantity
		return nil
	}
	next, _ := gcra.DecideInto(d, tat, now, q, granted)
	p.endCell(e, now, next)
	d.Refused = quantity - granted
	return nil
}

// decideWindow decides SW.ALLOW. The error is [limit.ErrWrongType] if e is not a window, or
// [limit.ErrOverflow].
func (p *Plan) decideWindow(d *limit.Decision, e *entry.Entry, now limit.Instant, c *slidingwindow.Call) error {
	p.Action, p.by = Keep, Window
	if e.Kind != entry.None && !e.Kind.IsWindow() {
		return limit.ErrWrongType
	}
	w := &p.window
	if err := slidingwindow.Decide(e.Kind.WindowMode(), e.Value, e.Expiry, now, c, w); err != nil {
		return err
	}
	*d, p.Foreign = w.Decision, w.Foreign
	p.end(e, Action(w.Action), entry.OfWindow(w.Mode), w.Expiry, c.Quantity < 0)
	if c.Quantity < 0 && p.holding.active && p.Action != Keep && !p.Foreign {
		return p.refundUnheld(d, e, now, c)
	}
	return nil
}

// decideBucket decides TB.ACQUIRE. The error is [limit.ErrWrongType] if e is not a bucket, or
// [limit.ErrOverflow].
func (p *Plan) decideBucket(d *limit.Decision, e *entry.Entry, now limit.Instant, c *tokenbucket.Call) error {
	p.Action, p.by = Keep, Bucket
	if e.Kind != entry.None && !e.Kind.IsBucket() {
		return limit.ErrWrongType
	}
	b := &p.bucket
	if err := tokenbucket.Decide(e.Kind.BucketMode(), e.Value, e.Expiry, now, c, b); err != nil {
		return err
	}
	*d, p.Foreign = b.Decision, b.Foreign
	p.end(e, Action(b.Action), entry.OfBucket(b.Mode), b.Expiry, false)
	return nil
}

// cancelBucket gives back the tokens that the call c took. If the key is no longer a bucket,
// cancelBucket plans no change and does not set d.
func (p *Plan) cancelBucket(d *limit.Decision, e *entry.Entry, now limit.Instant, c *tokenbucket.Call) {
	p.Action, p.by = Keep, Bucket
	if !e.Kind.IsBucket() {
		return
	}
	b := &p.bucket
	tokenbucket.Cancel(e.Kind.BucketMode(), e.Value, now, c, b)
	*d = b.Decision
	p.end(e, Action(b.Action), entry.OfBucket(b.Mode), b.Expiry, false)
}

// decideLease decides CC.ACQUIRE, CC.RELEASE and CC.RENEW.
func (p *Plan) decideLease(d *limit.Decision, e *entry.Entry, now limit.Instant, c *concurrency.Call) error {
	p.Action, p.by, p.Foreign = Keep, Lease, false
	if e.Kind != entry.None && !e.Kind.IsLease() {
		return limit.ErrWrongType
	}
	l := &p.lease
	if err := concurrency.Decide(e.Kind.LeaseMode(), e.Value, e.Expiry, now, c, l); err != nil {
		return err
	}
	*d = l.Decision
	// Frees is true, because an acquisition may also shorten a lease that the member holds.
	p.end(e, Action(l.Action), entry.OfLease(l.Mode), l.Expiry, true)
	return nil
}

// decideBan decides whether the key is banned. If denied is set, it counts a denial of the key. The
// error is [limit.ErrWrongType] if e is not the state of bans.
func (p *Plan) decideBan(d *limit.Decision, e *entry.Entry, now limit.Instant, c *ban.Call, denied bool) error {
	p.Action, p.by, p.Foreign = Keep, Ban, false
	if e.Kind != entry.None && e.Kind != entry.Ban {
		return limit.ErrWrongType
	}
	b := &p.bans
	ban.Decide(e.Value, now, c, denied, b)
	if *d = b.Decision; b.Stores {
		p.Action, p.Kind, p.Expiry, p.Frees = Store, entry.Ban, b.Expiry, false
	}
	return nil
}

// decideCounter decides INCREX on a plain string. A cell counts as a string with its TAT in
// decimal.
func (p *Plan) decideCounter(r *counter.Result, e *entry.Entry, now limit.Instant, c *counter.Call) error {
	p.Action, p.by = Keep, Counter
	value := e.Value
	switch e.Kind {
	case entry.None, entry.String:
	case entry.Cell:
		var decimal [counter.MaxInteger]byte
		value = gcra.AppendDecimal(decimal[:0], entry.CellTAT(e))
	default:
		return limit.ErrWrongType
	}
	n := &p.count
	if err := counter.Decide(value, e.Kind != entry.None, e.Expiry, now, c, n); err != nil {
		return err
	}
	*r = n.Result
	p.Action, p.Kind, p.Expiry = Action(n.Action), entry.String, n.Expiry
	p.Frees = p.Action != Keep && e.Kind == entry.Cell
	return nil
}

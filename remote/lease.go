package remote

import (
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// leasing is the part of a key's state that is used if the key is hot. The lock of the key's
// shard guards it.
type leasing struct {
	// may says that the operator wants leases for this key while it is hot.
	may bool
	// raced says that there were more than mostRaces conflicts over one batch.
	raced bool
	// calls is the number of leasable calls since the stopwatch reading from.
	calls int64
	from  time.Duration
	// exact is the stopwatch reading until which the engine decides the key, even if it is hot.
	exact time.Duration
	lease *lease
}

const (
	// A key is hot after more than hotCalls leasable calls within hotSpan, or after many conflicts.
	hotCalls = 100
	hotSpan  = 100 * time.Millisecond
	// shortest is the duration of the shortest lease that saves work.
	shortest = 5 * time.Millisecond
)

// count counts a call about the key at the stopwatch reading elapsed, and reports whether the key
// is hot. A key is not hot before exact.
func (l *leasing) count(elapsed time.Duration) bool {
	if elapsed-l.from > hotSpan {
		l.from, l.calls = elapsed, 0
	}
	l.calls++
	return elapsed >= l.exact && (l.raced || l.calls > hotCalls)
}

// lease is a number of units of a key that were charged in advance. This server hands them out
// without asking the engine, until the lease ends.
type lease struct {
	// call is the call that the lease serves, with a quantity of 0. The engine decides all other
	// calls.
	call decide.Ask

	left   int64         // number of units that were not handed out yet
	rest   int64         // number of units that remained in the engine after the charge
	state  entry.Entry   // the entry in the engine after the charge
	tag    tag           // the tag of the write with the charge
	paid   limit.Instant // the instant of the charge
	from   time.Duration // the time of the charge, as a reading of timing.Elapsed
	until  time.Duration // the end of the lease, as a reading of timing.Elapsed
	resume time.Duration // the lease is not prolonged before this time, because a window ends then
	lasts  time.Duration // planned duration of the lease; 0 means that there is none
	all    bool          // whether the lease has got all units that it wanted
	spent  int64         // number of units that were handed out
	lacked int64         // number of units that were refused
	most   int64         // the largest quantity of one call so far

	*renewer
}

// renewer has the fields that all successive leases of a key share.
type renewer struct {
	plan decide.Plan
	// renewing says that the next lease is being taken. turn returns a new item for the key's
	// queue. When the item is first in the queue, the next lease is taken.
	renewing bool
	turn     func() *item
}

// leasable reports whether a lease may decide a: a takes all of its units or none, at once, and
// only the sum of the units matters for its limiter's state. A lease charges units earlier than
// it hands them out, so limiters whose state depends on the times of the units are always decided
// by the engine: LOG and BUCKETS, INTERVAL, DEBT, LEAKY, WARMUP, and the limits of concurrency
// (CC). So are calls that leave units for others, because a lease does not know how many remain, and calls with an
// identity.
func leasable(a *decide.Ask) bool {
	if !takes(a) || a.Keep > 0 || needsEngine(a) {
		return false
	}
	switch a.Family {
	case decide.Cell:
		return a.Quota.Limit() > 0
	case decide.Window:
		c := &a.Window
		fits := c.Mode == slidingwindow.Counter || c.Mode == slidingwindow.Fixed || c.Mode == slidingwindow.Calendar
		return fits && c.Limit > 0 && c.Charge == slidingwindow.Whole && !c.First
	case decide.Bucket:
		c := &a.Bucket
		return c.Capacity > 0 && c.Charge == tokenbucket.Whole && c.Mode == tokenbucket.Greedy && c.Init == c.Capacity
	}
	return false
}

// quantityOf returns a pointer to the quantity in a. The family of a is Cell, Window or Bucket.
func quantityOf(a *decide.Ask) *int64 {
	switch a.Family {
	case decide.Window:
		return &a.Window.Quantity
	case decide.Bucket:
		return &a.Bucket.Quantity
	}
	return &a.Quantity
}

// with returns a copy of the call of the lease with the given quantity.
func (l *lease) with(quantity int64) *decide.Ask {
	a := l.call
	*quantityOf(&a) = quantity
	return &a
}

// fits reports whether a is the call that the lease serves, with any quantity.
func (l *lease) fits(a *decide.Ask) bool {
	if a.Family != l.call.Family || !leasable(a) {
		return false
	}
	switch a.Family {
	case decide.Window:
		c := a.Window
		c.Quantity, c.Millis = 0, l.call.Window.Millis
		return c == l.call.Window
	case decide.Bucket:
		c := a.Bucket
		c.Quantity, c.Millis = 0, l.call.Bucket.Millis
		return c == l.call.Bucket
	}
	return a.Quota == l.call.Quota
}

// decide decides a without the engine, at the stopwatch reading elapsed and the instant now. If the
// units suffice, it grants a. If they do not and the lease has got all units that it wanted, it
// returns false, because a larger lease may be had. If the engine had no more units, it refuses a.
// It also returns false if a is another call or the lease has ended.
func (l *lease) decide(a *decide.Ask, elapsed time.Duration, now limit.Instant) bool {
	if elapsed >= l.until || !l.fits(a) {
		return false
	}
	quantity := *quantityOf(a)
	l.most = max(l.most, quantity)
	e := l.state
	if now = max(now, l.paid); e.Expiry <= now {
		e = entry.Entry{}
	}
	if quantity > l.left {
		if l.all {
			return false
		}
		l.refuse(a, &e, elapsed, now)
		return true
	}
	if l.plan.One(&e, now, &l.call) != nil {
		return false
	}
	l.left -= quantity
	l.spent += quantity
	a.Now, a.Err, a.Decision = now, nil, l.call.Decision
	a.Decision.Refused, a.Decision.RetryAfter = 0, limit.NoRetry
	a.Decision.Remaining = l.remaining(a)
	return true
}

// due reports whether a has to wait until the lease is prolonged: the lease has ended, or its units
// do not suffice and the engine may have more.
func (l *lease) due(a *decide.Ask, elapsed time.Duration) bool {
	return !l.renewing && elapsed >= l.resume && l.fits(a) &&
		(elapsed >= l.until || l.all && *quantityOf(a) > l.left)
}

// remaining returns the number of units left in the lease and in the engine after the charge, at
// most the limit of a.
func (l *lease) remaining(a *decide.Ask) int64 {
	return max(0, min(limit.SatAdd(l.left, l.rest), a.Decision.Limit))
}

// refuse refuses a because the lease lacks units. e is the entry in the engine after the charge. If
// the engine has enough units again by now, RetryAfter is the time until the lease ends.
func (l *lease) refuse(a *decide.Ask, e *entry.Entry, elapsed time.Duration, now limit.Instant) {
	quantity := *quantityOf(a)
	l.lacked = limit.SatAdd(l.lacked, quantity)
	a.Now = now
	a.Err = l.plan.One(e, now, a)
	if a.Lapsed = 0; a.Err != nil { // reservations can end only in the engine
		return
	}
	d := &a.Decision
	if d.Allowed() {
		d.Refused, d.RetryAfter = 1, max(time.Nanosecond, l.until-elapsed)
	}
	d.Remaining = min(l.remaining(a), quantity-1)
}

// demand returns the number of units for a next lease of the duration lasts. It is one and a half
// times the estimate from the calls during this lease, which began at from and is now at elapsed.
// demand returns 0 if a lease does not save work.
func (l *lease) demand(elapsed, lasts time.Duration) int64 {
	took := max(elapsed-l.from, time.Microsecond)
	asked := limit.SatAdd(l.spent, l.lacked)
	if limit.MulDivFloor(asked, int64(hotSpan), int64(took)) < hotCalls/2 {
		return 0
	}
	want := limit.MulDivCeil(asked, int64(lasts), int64(took))
	return max(limit.SatAdd(want, want/2), l.most, 1)
}

// pause ends the lease, and prevents its renewal until the stopwatch reading elapsed+left, when a
// window ends. The units of the lease were given back or are lost.
func (l *lease) pause(elapsed, left time.Duration) {
	l.left, l.until, l.resume = 0, 0, elapsed+left
}

// term returns the longest useful duration of a lease for a, without regard to the rest of a
// window: a quarter of the time in which the limit refills, but no more than most, the operator's
// maximum.
func term(a *decide.Ask, most time.Duration) time.Duration {
	switch a.Family {
	case decide.Cell:
		return min(most, times(a.Quota.Interval(), a.Quota.Limit())/4)
	case decide.Bucket:
		return min(most, times(a.Bucket.Interval, a.Bucket.Capacity)/4)
	case decide.Window:
		if a.Window.Mode == slidingwindow.Calendar {
			return min(most, a.Window.Calendar.Unit.Nominal()/4)
		}
		return min(most, a.Window.Window/4)
	}
	return 0
}

// untilEdge returns the time from the instant now to the end of the window of c that contains now.
func untilEdge(c *slidingwindow.Call, now limit.Instant) time.Duration {
	if c.Mode == slidingwindow.Calendar {
		_, end := c.Calendar.Window(now)
		return end.Sub(now)
	}
	return c.Window - slidingwindow.PhaseAt(now.Add(-c.Phase), c.Window)
}

// times returns n times d, or the largest duration if that overflows.
func times(d time.Duration, n int64) time.Duration {
	return time.Duration(limit.SatMul(int64(d), n))
}

package cluster

import (
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// leasing is what a key has, beside its queue and memory, for being asked about very often.
// It is guarded by the lock of the key's shard.
type leasing struct {
	// may says that the operator wants leases for this key, once it is hot.
	may bool
	// raced says that an exchange lost race after race.
	raced bool
	// calls came since from, of one kind.
	calls int64
	from  time.Duration
	// exact is until when the key is decided exactly, however often it is asked about.
	exact time.Duration
	lease *lease
}

const (
	// hotCalls in hotSpan make a key hot.
	hotCalls = 100
	hotSpan  = 100 * time.Millisecond
	// shortest is the shortest lease that is worth it.
	shortest = 5 * time.Millisecond
)

// count counts a call about the key, and reports whether the key is hot.
func (l *leasing) count(elapsed time.Duration) bool {
	if elapsed-l.from > hotSpan {
		l.from, l.calls = elapsed, 0
	}
	l.calls++
	return elapsed >= l.exact && (l.raced || l.calls > hotCalls)
}

// lease is units of a key that are paid for, so that this server hands them out without
// asking. Until it ends, that is.
type lease struct {
	// call is the call that it is for, with a quantity of 0. Others are decided exactly.
	call decide.Ask

	left   int64         // units that are paid for
	rest   int64         // what remained in the engine then
	state  entry.Entry   // what the engine had afterwards
	tag    tag           // of the write that paid
	paid   limit.Instant // when
	from   time.Duration // the same
	until  time.Duration // from when on nothing is handed out any more
	resume time.Duration // before which it is not prolonged, since a window ends
	lasts  time.Duration // how long it was meant to last
	all    bool          // it has got all that it wanted
	spent  int64         // units handed out
	lacked int64         // units refused
	most   int64         // the most units of one call

	*renewer
}

// renewer is what the leases of a key have in common, one after another.
type renewer struct {
	plan decide.Plan
	// renewing says that the next lease is being taken. turn makes the hold for that.
	renewing bool
	turn     func() *item
}

// leasable reports whether a may be decided by a lease: it takes all of its units or none, at
// once, from a state of which nothing but the sum of the units counts. A lease pays earlier
// than it hands out. So LOG and BUCKETS, which keep the times of units, INTERVAL, DEBT,
// LEAKY and WARMUP, whose state depends on them, and CC are exact.
func leasable(a *decide.Ask) bool {
	if !takes(a) {
		return false
	}
	switch a.Family {
	case decide.Cell:
		return a.Quota.Limit() > 0
	case decide.Window:
		c := &a.Window
		return c.Limit > 0 && c.Charge == slidingwindow.Whole && !c.First && (c.Mode == slidingwindow.Counter || c.Mode == slidingwindow.Fixed)
	case decide.Bucket:
		c := &a.Bucket
		return c.Capacity > 0 && c.Charge == tokenbucket.Whole && c.Mode == tokenbucket.Greedy && c.Init == c.Capacity
	}
	return false
}

// quantityOf is where a has how many units it is about.
func quantityOf(a *decide.Ask) *int64 {
	switch a.Family {
	case decide.Window:
		return &a.Window.Quantity
	case decide.Bucket:
		return &a.Bucket.Quantity
	}
	return &a.Quantity
}

// with is the call of the lease with another quantity.
func (l *lease) with(quantity int64) *decide.Ask {
	a := l.call
	*quantityOf(&a) = quantity
	return &a
}

// fits reports whether a is a call of the lease, with whatever quantity.
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

// decide decides a without the engine. It returns false if it cannot: a is another call, the
// time of the lease is over, or it is to be prolonged first.
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

// due reports whether a has to wait until the lease is prolonged.
func (l *lease) due(a *decide.Ask, elapsed time.Duration) bool {
	return !l.renewing && elapsed >= l.resume && l.fits(a) &&
		(elapsed >= l.until || l.all && *quantityOf(a) > l.left)
}

// remaining is what is left of the lease, and of what the engine had when it was paid.
func (l *lease) remaining(a *decide.Ask) int64 {
	return max(0, min(limit.SatAdd(l.left, l.rest), a.Decision.Limit))
}

// refuse refuses a for want of units. If the engine has some by now they are there once the
// lease is prolonged.
func (l *lease) refuse(a *decide.Ask, e *entry.Entry, elapsed time.Duration, now limit.Instant) {
	quantity := *quantityOf(a)
	l.lacked = limit.SatAdd(l.lacked, quantity)
	a.Now = now
	if a.Err = l.plan.One(e, now, a); a.Err != nil {
		return
	}
	d := &a.Decision
	if d.Allowed() {
		d.Refused, d.RetryAfter = 1, max(time.Nanosecond, l.until-elapsed)
	}
	d.Remaining = min(l.remaining(a), quantity-1)
}

// demand is how many units a lease of that length is to have, after what was asked of this
// one; 0 if it is not worth one.
func (l *lease) demand(elapsed, lasts time.Duration) int64 {
	took := max(elapsed-l.from, time.Microsecond)
	asked := limit.SatAdd(l.spent, l.lacked)
	if limit.MulDivFloor(asked, int64(hotSpan), int64(took)) < hotCalls/2 {
		return 0
	}
	want := limit.MulDivCeil(asked, int64(lasts), int64(took))
	return max(limit.SatAdd(want, want/2), l.most, 1)
}

// pause ends what the lease may hand out, which was given back or is lost, until a window is
// over.
func (l *lease) pause(elapsed, left time.Duration) {
	l.left, l.until, l.resume = 0, 0, elapsed+left
}

// term is how long a lease of the call may last, whatever is left of a window. most is how
// long the operator lets it.
func term(a *decide.Ask, most time.Duration) time.Duration {
	switch a.Family {
	case decide.Cell:
		return min(most, times(a.Quota.Interval(), a.Quota.Limit())/4)
	case decide.Bucket:
		return min(most, times(a.Bucket.Interval, a.Bucket.Capacity)/4)
	case decide.Window:
		return min(most, a.Window.Window/4)
	}
	return 0
}

// untilEdge is the time until the end of the window at an instant.
func untilEdge(c *slidingwindow.Call, now limit.Instant) time.Duration {
	return c.Window - slidingwindow.PhaseAt(now.Add(-c.Phase), c.Window)
}

func times(d time.Duration, n int64) time.Duration {
	return time.Duration(limit.SatMul(int64(d), n))
}

package remote

import (
	"time"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// takes reports whether a can only take units: its whole quantity or a part, without waiting,
// blocking or penalizing.
func takes(a *decide.Ask) bool {
	switch a.Family {
	case decide.Cell:
		return a.Quantity > 0
	case decide.Window:
		c := &a.Window
		return c.Quantity > 0 && (c.Charge == slidingwindow.Whole || c.Charge == slidingwindow.Partial) && !c.Penalize && !c.Block
	case decide.Bucket:
		c := &a.Bucket
		return c.Quantity > 0 && (c.Charge == tokenbucket.Whole || c.Charge == tokenbucket.Partial) && !c.Penalize && !c.Waits && c.MaxWait == 0 && !c.Block
	case decide.Lease:
		c := &a.Lease
		return c.Op == concurrency.Acquire && !c.Peek && !c.Block
	}
	return false // a Joint ends here too, because neither a denial nor a lease can answer it
}

// denial is a refusal that can be repeated: the same call is refused again as long as no other call
// frees units. decision is the refusal, which was decided at the instant at. It may be repeated
// before the instant until. A repeated answer has shorter times, because time has passed.
type denial struct {
	call     any   // the fields that distinguish the call from others, as a value that can be compared
	keep     int64 // the value of Keep in the call
	decision limit.Decision
	at       limit.Instant
	until    limit.Instant
}

// cellCall identifies a call of the family Cell: two calls with equal fields get the same answer.
type cellCall struct {
	quota    gcra.Quota
	quantity int64
}

// leaseCall identifies a call of the family Lease: two calls with equal fields get the same answer.
type leaseCall struct {
	member     string
	most       int64
	lease      time.Duration
	maxMembers int64
}

// needsEngine reports whether only the state in the engine can answer a, because it has an identity: neither a denial
// nor a lease knows whether the call was charged before.
func needsEngine(a *decide.Ask) bool { return a.ID.Token != nil }

// denialOf returns the refusal of a. It returns nil if a was not refused completely, if the refusal
// cannot be repeated, or if most is not positive. now is the clock's instant, which may be earlier
// than a.Now. The refusal is repeated for at most the duration most, and not beyond the end of a reservation, which
// gives units back.
func denialOf(a *decide.Ask, now limit.Instant, most time.Duration) *denial {
	d := a.Decision
	if most <= 0 || a.Err != nil || !takes(a) || needsEngine(a) || d.Refused <= 0 || d.Refused < asked(a) {
		return nil
	}
	if d.RetryAfter != limit.NoRetry {
		most = min(most, d.RetryAfter)
	}
	if a.Ends > 0 {
		most = min(most, a.Ends)
	}
	return &denial{call: callOf(a), keep: a.Keep, decision: d, at: a.Now, until: min(a.Now, now).Add(most)}
}

// asked returns the value of Decision.Refused if all of a is refused: its quantity if it may be
// granted in part, otherwise 1.
func asked(a *decide.Ask) int64 {
	switch {
	case a.Family == decide.Window && a.Window.Charge == slidingwindow.Partial:
		return a.Window.Quantity
	case a.Family == decide.Bucket && a.Bucket.Charge == tokenbucket.Partial:
		return a.Bucket.Quantity
	}
	return 1
}

// callOf returns a comparable copy of the call of a. The family of a is Cell, Window, Bucket or
// Lease.
func callOf(a *decide.Ask) any {
	switch a.Family {
	case decide.Cell:
		return cellCall{a.Quota, a.Quantity}
	case decide.Window:
		return a.Window
	case decide.Bucket:
		return a.Bucket
	}
	l := &a.Lease
	return leaseCall{string(l.Member), l.Limit, l.Lease, l.MaxMembers}
}

// same reports whether a is the call that was refused.
func (d *denial) same(a *decide.Ask) bool {
	if d.keep != a.Keep || needsEngine(a) {
		return false
	}
	switch c := d.call.(type) {
	case cellCall:
		return a.Family == decide.Cell && c.quantity == a.Quantity && c.quota == a.Quota
	case slidingwindow.Call:
		return a.Family == decide.Window && c == a.Window
	case tokenbucket.Call:
		return a.Family == decide.Bucket && c == a.Bucket
	case leaseCall:
		l := &a.Lease
		return a.Family == decide.Lease && takes(a) && c.most == l.Limit && c.lease == l.Lease &&
			c.maxMembers == l.MaxMembers && c.member == string(l.Member)
	}
	return false
}

// repeat stores the refusal in a as of the instant now, and returns true. If a is another call, or
// the refusal may no longer be repeated, repeat changes nothing and returns false.
func (d *denial) repeat(a *decide.Ask, now limit.Instant) bool {
	if now >= d.until || !d.same(a) {
		return false
	}
	passed := max(0, now.Sub(d.at))
	a.Now, a.Err, a.Decision = d.at.Add(passed), nil, d.decision
	if a.Decision.RetryAfter != limit.NoRetry {
		a.Decision.RetryAfter -= passed
	}
	a.Decision.ResetAfter = max(0, a.Decision.ResetAfter-passed)
	return true
}

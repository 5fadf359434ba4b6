package remote

import (
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/states"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// refundable reports whether a has taken units that can be given back. was is the entry on which
// a was decided.
func refundable(a *decide.Ask, was *entry.Entry) bool {
	return taken(a) > 0 && !(a.Family == decide.Lease && holds(was, a))
}

// taken returns the number of units that a was granted and that can be given back, 0 if it was refused or is not an ask
// for units. The units of a call with an identity are not given back, because its key remembers the call: if the client
// sends it again, the call counts as charged, and is not charged twice.
func taken(a *decide.Ask) int64 {
	quantity, partial, looks := int64(1), false, false
	if a.ID.Token != nil {
		return 0
	}
	switch a.Family {
	case decide.Cell:
		quantity = a.Quantity
	case decide.Window:
		c := &a.Window
		quantity, partial, looks = c.Quantity, c.Charge == slidingwindow.Partial, c.Charge == slidingwindow.Peek
	case decide.Bucket:
		c := &a.Bucket
		quantity, partial, looks = c.Quantity, c.Charge == tokenbucket.Partial, c.Charge == tokenbucket.Peek
	case decide.Lease:
		looks = a.Lease.Op != concurrency.Acquire || a.Lease.Peek
	default:
		return 0 // a Joint ends here too, because its charges are not given back
	}
	switch {
	case looks, a.Err != nil:
		return 0
	case partial:
		return max(0, quantity-a.Decision.Refused)
	case a.Decision.Allowed():
		return max(0, quantity)
	}
	return 0
}

// returned returns the number of units that a has given back because its quantity is negative, at most: the limiter may have
// had fewer.
func returned(a *decide.Ask) int64 {
	quantity := int64(0)
	switch a.Family {
	case decide.Cell:
		quantity = a.Quantity
	case decide.Window:
		quantity = a.Window.Quantity
	case decide.Bucket:
		quantity = a.Bucket.Quantity
	}
	if a.Err != nil || !a.Decision.Allowed() {
		return 0
	}
	return max(0, -quantity)
}

// holds reports whether the member in a already held a lease before a was decided. was is the
// entry on which a was decided.
func holds(was *entry.Entry, a *decide.Ask) bool {
	if !was.Kind.IsLease() {
		return false
	}
	c := concurrency.Call{Op: concurrency.Release, Member: a.Lease.Member}
	var p concurrency.Plan
	err := concurrency.Decide(was.Kind.LeaseMode(), was.Value, was.Expiry, a.Now, &c, &p)
	return err == nil && p.Decision.Allowed()
}

// refund returns the ask that gives back the charge of a, to be decided on v at the instant now.
// latest says that there was no write after that of a. refund returns nil if the charge cannot be
// given back, for example because its window is over or another call may rely on the lease by now. If a has given units
// back itself, they are charged again, even beyond the limit.
func refund(a *decide.Ask, v *value, now limit.Instant, latest bool) *decide.Ask {
	back := &decide.Ask{DB: a.DB, Key: a.Key, Family: a.Family, Counts: returned(a) > 0}
	switch a.Family {
	case decide.Cell:
		back.Quota, back.Quantity = a.Quota, -a.Quantity
	case decide.Window:
		if !sameWindow(a, v, now) {
			return nil
		}
		back.Window = a.Window
		back.Window.Quantity = returned(a) - taken(a)
		back.Window.Charge, back.Window.Penalize = slidingwindow.Whole, false
	case decide.Bucket:
		back.Bucket = a.Bucket
		if back.Bucket.Quantity = returned(a); !back.Counts {
			back.Family, back.Bucket.Quantity = decide.Cancel, taken(a)
		}
	case decide.Lease:
		if !latest {
			return nil
		}
		back.Lease = concurrency.Call{Op: concurrency.Release, Member: a.Lease.Member}
	default:
		return nil
	}
	return back
}

// sameWindow reports whether the windows of v at the instant now are those in which a was
// charged. In later windows the newest units belong to other calls.
func sameWindow(a *decide.Ask, v *value, now limit.Instant) bool {
	e := states.Plain(&v.entry)
	if !e.Kind.IsWindow() || e.Kind.WindowMode() != a.Window.Mode {
		return false
	}
	now = max(now, v.stamp)
	start, window := limit.MinInstant, int64(0)
	slidingwindow.Describe(e.Kind.WindowMode(), e.Value, now, func(field string, n int64) {
		switch field {
		case "start-ns":
			start = limit.Instant(n)
		case "window-ns":
			window = n
		}
	})
	switch {
	case a.Window.Mode == slidingwindow.Calendar:
		return slidingwindow.Follows(e.Value, &a.Window.Calendar) && start <= a.Now
	case window != int64(a.Window.Window):
		return false
	case start != limit.MinInstant:
		return start <= a.Now
	}
	return int64(now.Sub(a.Now)) < window // a log has no fixed windows: each unit counts for the length of the window
}

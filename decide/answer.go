package decide

import (
	"slices"

	"github.com/cellserver/cellserver/limit"
)

// Binding returns one decision that combines the Details of a [Several]. Limit and Remaining are
// those of the clause with the least remaining; if the call was refused, only refused clauses
// count. ResetAfter is the longest of all clauses, and RetryAfter the longest of the clauses that
// count. RetryAfter of a refused call is [limit.NoRetry] if one of its refused clauses can never be
// granted. Refused is 0 if the call was granted, 1 if it was refused, and for a Partial the number
// of units that were not granted.
func (a *Ask) Binding() limit.Decision {
	d := limit.Decision{RetryAfter: limit.NoRetry}
	chosen, never := false, false
	for i := range a.Details {
		detail := &a.Details[i]
		d.ResetAfter = max(d.ResetAfter, detail.ResetAfter)
		if a.Refused && detail.Refused == 0 {
			continue
		}
		if !chosen || detail.Remaining < d.Remaining {
			d.Limit, d.Remaining, chosen = detail.Limit, detail.Remaining, true
		}
		never = never || detail.RetryAfter == limit.NoRetry
		d.RetryAfter = max(d.RetryAfter, detail.RetryAfter)
	}
	if a.Refused {
		if d.Refused = 1; never {
			d.RetryAfter = limit.NoRetry
		}
	}
	if a.Partial && a.Missing > 0 {
		d.Refused = a.Missing
	}
	return d
}

// Whole returns the decision on a as a whole: the decision of Binding for a [Several], and
// otherwise Decision.
func (a *Ask) Whole() limit.Decision {
	if a.Family == Several {
		return a.Binding()
	}
	return a.Decision
}

// Units returns the number of units that a Partial asks each clause for. It returns 1 if every
// clause is a lease or Fixed.
func (a *Ask) Units() int64 {
	for i := range a.Clauses {
		if n := a.Clauses[i].units(); n != nil {
			return *n
		}
	}
	return 1
}

// Granted returns the number of units that each clause of a granted Partial was granted, except
// leases and clauses that are Fixed.
func (a *Ask) Granted() int64 { return a.Units() - a.Missing }

// Reserved reports whether a, which was decided without an error, has made a reservation. A
// repetition makes none. If several asks make one reservation, only the ask with the first window
// or bucket counts as having made it.
func (a *Ask) Reserved() bool {
	if a.Reserve.TTL == 0 || a.Repeated || a.Full {
		return false
	}
	if a.Family == Several && !slices.ContainsFunc(a.Clauses, func(c Clause) bool { return !c.Unlimited }) {
		return false
	}
	if a.Reserve.Of > 0 && !slices.ContainsFunc(a.Clauses, func(c Clause) bool { return c.Lease == nil && !c.Unlimited && c.Index == 0 }) {
		return false
	}
	if a.Family == Several {
		return !a.Refused
	}
	if asked := a.shared(); asked > 0 {
		return a.Decision.Refused < asked
	}
	return a.Decision.Refused == 0
}

// Refuse turns the answer of a [Several] into a refusal of all units. It sets Refused, and for a
// Partial also Missing.
func (a *Ask) Refuse() {
	if a.Refused = true; a.Partial {
		a.Missing = a.Units()
	}
}

// ResetAnswer resets the fields of the answer that a decision sets only in some cases, about repetitions and
// reservations, and Linked. A store that may decide a again calls it before each decision.
func (a *Ask) ResetAnswer() {
	a.Repeated, a.Forgotten, a.Shortest, a.Lapsed, a.Full, a.Ends = false, 0, 0, 0, false, 0
	a.Linked, a.Estimated, a.Used = false, 0, 0
}

// TakeAnswer copies the answer of another ask into a. That one is a copy of a that was decided instead of a. The
// Details of both have the same length.
func (a *Ask) TakeAnswer(from *Ask) {
	a.Now, a.Err, a.Foreign = from.Now, from.Err, from.Foreign
	a.Decision, a.Refused, a.Missing = from.Decision, from.Refused, from.Missing
	a.Result, a.Counted = from.Result, from.Counted
	a.Repeated, a.Forgotten, a.Shortest = from.Repeated, from.Forgotten, from.Shortest
	a.Lapsed, a.Full, a.Ends = from.Lapsed, from.Full, from.Ends
	a.Linked, a.Settled, a.Estimated, a.Used = from.Linked, from.Settled, from.Estimated, from.Used
	copy(a.Details, from.Details)
}

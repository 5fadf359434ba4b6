package decide

import "github.com/cellserver/cellserver/limit"

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

// Whole returns the decision on a as a whole: for a [Several] that of Binding, otherwise Decision.
func (a *Ask) Whole() limit.Decision {
	if a.Family == Several {
		return a.Binding()
	}
	return a.Decision
}

// Units returns the number of units that a [Several] asks each clause for. It returns 1 if no
// clause counts units.
func (a *Ask) Units() int64 {
	for i := range a.Clauses {
		if n := a.Clauses[i].units(); n != nil {
			return *n
		}
	}
	return 1
}

// Granted returns the number of units that each clause of a granted [Several] was granted.
func (a *Ask) Granted() int64 { return a.Units() - a.Missing }

// Refuse turns the answer of a [Several] into a refusal of all units: it sets Refused, and for a
// Partial also Missing.
func (a *Ask) Refuse() {
	if a.Refused = true; a.Partial {
		a.Missing = a.Units()
	}
}

// Undo returns back, an ask that gives back the units which clause i of a granted [Several] took.
// It is used when the caller no longer waits for promised tokens. back refers to the same bytes as
// a. ok is false if a was not granted, or if the clause took nothing. ok is also false for a window
// or a lease, whose units expire by themselves: by now the newest units of the window may be those
// of other calls, and the member may have acquired the lease again.
func (a *Ask) Undo(i int) (back Ask, ok bool) {
	c, n := &a.Clauses[i], a.Granted()
	back = Ask{DB: a.DB, Key: c.Key, Millis: a.Millis}
	switch {
	case a.Refused || a.Err != nil || n <= 0:
		return back, false
	case c.Bucket != nil:
		back.Family, back.Bucket = Cancel, *c.Bucket
		back.Bucket.Quantity = n
	case c.Quota != nil:
		back.Family, back.Quota, back.Quantity = Cell, *c.Quota, -n
	}
	return back, back.Family != 0
}

package decide

import "github.com/cellserver/cellserver/limit"

// Binding is the answer of a Several as a whole, of its Details: the limit that leaves least,
// among the refused ones if there are any, with the longest times. What a grant waits for is
// the longest wait of a clause.
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

// Units returns the units that a Several asks each clause for: 1 if no clause counts units.
func (a *Ask) Units() int64 {
	for i := range a.Clauses {
		if n := a.Clauses[i].units(); n != nil {
			return *n
		}
	}
	return 1
}

// Granted returns the units that each clause of a Several was granted, unless it was refused.
func (a *Ask) Granted() int64 { return a.Units() - a.Missing }

// Refuse turns the answer of a Several into a refusal.
func (a *Ask) Refuse() {
	if a.Refused = true; a.Partial {
		a.Missing = a.Units()
	}
}

// Undo is an ask that gives back what clause i of a granted Several took, for a caller that
// stopped waiting for tokens that were promised. It refers to what a refers to. ok is false if
// there is nothing to give back, or nothing that is the caller's for certain: the newest units
// of a window may be others' by now, and the member of a lease may have come again. Both come
// back by themselves.
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

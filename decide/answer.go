package decide

import "github.com/cellserver/cellserver/limit"

// Binding combines the Details of a Several into one answer: the limit with the least remaining,
// among the refused ones if there are any, with the longest times. The waiting time of a grant is
// the longest one of a clause.
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

// Undo returns an ask that returns the units which clause i of a granted Several took, for a caller
// that stopped waiting for promised tokens. It refers to the same bytes as a. ok is false if there
// is nothing to return, or if it may no longer belong to the caller: the newest units of a window
// may be those of other calls by now, and the member of a lease may have acquired it again. Both
// expire by themselves.
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

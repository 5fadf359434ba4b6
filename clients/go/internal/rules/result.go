package rules

import (
	"errors"
	"time"
)

// None is a time in [Numbers] if waiting does not help.
const None time.Duration = -1

// Numbers are the five integers of a reply. The times are durations.
type Numbers struct {
	// Refused is 0 if the limit does not deny the call. With PARTIAL it is the number of units that were not granted,
	// and otherwise 1.
	Refused int64
	// Limit and Remaining are numbers of units.
	Limit, Remaining int64
	// RetryAfter is the time until the call would pass, or [None] if the call has passed or waiting does not help.
	RetryAfter time.Duration
	// ResetAfter is the time until no unit is in use, or [None].
	ResetAfter time.Duration
}

// Decision is the decision that a reply contains.
type Decision struct {
	Numbers
	// Clauses are the numbers for each clause, at least one.
	Clauses []Numbers
}

// ErrReply means that a reply does not have five integers for the call and for each clause.
var ErrReply = errors.New("the reply is not one of a limiter")

// fields is the number of integers of each decision in a reply.
const fields = 5

// Read returns the decision in a reply, which is either five integers, or a list of those and of a list of five integers
// for each clause. The integers are int64.
func Read(reply any) (Decision, error) {
	list, ok := reply.([]any)
	if !ok || len(list) == 0 {
		return Decision{}, ErrReply
	}
	if _, flat := list[0].(int64); flat {
		n, err := numbers(list)
		return Decision{Numbers: n, Clauses: []Numbers{n}}, err
	}
	if len(list) != 2 {
		return Decision{}, ErrReply
	}
	n, err := numbers(list[0])
	each, ok := list[1].([]any)
	if err != nil || !ok || len(each) == 0 {
		return Decision{}, ErrReply
	}
	d := Decision{Numbers: n, Clauses: make([]Numbers, len(each))}
	for i := range each {
		if d.Clauses[i], err = numbers(each[i]); err != nil {
			return Decision{}, err
		}
	}
	return d, nil
}

func numbers(v any) (Numbers, error) {
	list, ok := v.([]any)
	if !ok || len(list) != fields {
		return Numbers{}, ErrReply
	}
	var five [fields]int64
	for i := range list {
		if five[i], ok = list[i].(int64); !ok {
			return Numbers{}, ErrReply
		}
	}
	return Numbers{five[0], five[1], five[2], millis(five[3]), millis(five[4])}, nil
}

func millis(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	if n < 0 {
		return None
	}
	return time.Duration(min(n, most)) * time.Millisecond
}

// Allowed reports whether the call may go ahead.
func (d *Decision) Allowed() bool { return d.Refused == 0 }

// Never reports whether a call with this cost can never pass, because it is above a limit.
func (d *Decision) Never(cost int64) bool {
	if d.Allowed() || d.RetryAfter != None {
		return false
	}
	for i := range d.Clauses {
		if c := &d.Clauses[i]; c.Refused > 0 && c.RetryAfter == None && cost > c.Limit {
			return true
		}
	}
	return cost > d.Limit
}

// above reports whether a cost is above a limit.
func (d *Decision) above(cost int64) bool {
	for i := range d.Clauses {
		if cost > d.Clauses[i].Limit {
			return true
		}
	}
	return cost > d.Limit
}

// Blocked reports whether a block without an end has denied a call with this cost: it would fit, but there is nothing
// to wait for.
func (d *Decision) Blocked(cost int64) bool {
	return !d.Allowed() && d.RetryAfter == None && !d.Never(cost)
}

// After returns the decision as it is when a time has passed in which nothing was taken: waits and resets are shorter.
func (d *Decision) After(passed time.Duration) Decision {
	next := Decision{Numbers: d.Numbers.after(passed), Clauses: make([]Numbers, len(d.Clauses))}
	for i := range d.Clauses {
		next.Clauses[i] = d.Clauses[i].after(passed)
	}
	return next
}

func (n Numbers) after(passed time.Duration) Numbers {
	if n.RetryAfter != None {
		n.RetryAfter = max(0, n.RetryAfter-passed)
	}
	if n.ResetAfter != None {
		n.ResetAfter = max(0, n.ResetAfter-passed)
	}
	return n
}

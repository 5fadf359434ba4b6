package limit

import (
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

// Source says what has decided a call.
type Source string

// These are the sources.
const (
	Server      Source = "server"      // the server
	Cache       Source = "cache"       // a denial of the server less than a second ago
	InProcess   Source = "local"       // the limiter in the process, since the server does not answer
	Unavailable Source = "unavailable" // Options.OnUnavailable, since the server does not answer
)

// None is a time that there is none of: nothing to wait for, or no end.
const None time.Duration = rules.None

// Numbers are those of one limit. Times are whole milliseconds, rounded up.
type Numbers struct {
	// Denies says that the limit is in the way of the call.
	Denies bool
	// Limit and Remaining are units. Remaining is what another call would get at once.
	Limit, Remaining int64
	// RetryAfter is the time until the same call would pass. It is [None] if the call has passed or waiting does not help.
	RetryAfter time.Duration
	// ResetAfter is the time until the limit is unused, or [None].
	ResetAfter time.Duration
}

// Result is the decision on a call.
type Result struct {
	// Allowed says that the call may go ahead. If Source is [Unavailable], the other numbers mean nothing.
	Allowed bool
	// Granted is the number of units of a call with [Partial] that may go ahead. For other calls it is the cost, or 0.
	Granted int64
	// Numbers are those of the call as a whole. Those of several limits are of different ones, so header fields are made of Limits.
	Numbers
	// Limits are the numbers of each clause.
	Limits []Numbers
	Source Source
	// Never says that the cost is above a limit, so that the call can never pass.
	Never bool
	// Blocked says that a block without an end has denied the call.
	Blocked bool
}

// result returns a decision as a result.
func result(d *rules.Decision, q *rules.Request, s Source) Result {
	cost := q.Cost
	r := Result{
		Allowed: d.Allowed(), Numbers: numbers(&d.Numbers), Limits: make([]Numbers, len(d.Clauses)), Source: s,
		Never: d.Never(cost), Blocked: d.Blocked(cost),
	}
	switch {
	case q.Mode == Partial:
		r.Granted = max(0, cost-d.Refused)
	case r.Allowed:
		r.Granted = cost
	}
	for i := range d.Clauses {
		r.Limits[i] = numbers(&d.Clauses[i])
	}
	return r
}

func numbers(n *rules.Numbers) Numbers {
	return Numbers{n.Refused > 0, n.Limit, n.Remaining, n.RetryAfter, n.ResetAfter}
}

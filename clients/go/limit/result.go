package limit

import (
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

// Source says which part of the system has decided a call.
type Source string

// These are the sources of decisions.
const (
	Server      Source = "server"      // the server has decided
	Cache       Source = "cache"       // the cache has repeated a recent denial of the server
	InProcess   Source = "local"       // the limiter in the process has decided, since the server does not answer
	Unavailable Source = "unavailable" // Options.OnUnavailable has decided, since the server does not answer
)

// None is the value of a time that does not exist: waiting does not help, or there is no end.
const None time.Duration = rules.None

// Numbers are the numbers of one limit. Times are whole milliseconds, rounded up.
type Numbers struct {
	// Denies says that the limit denies the call.
	Denies bool
	// Limit and Remaining are numbers of units. Another call would get up to Remaining units at
	// once.
	Limit, Remaining int64
	// RetryAfter is the time until the same call would pass. It is [None] if the call has passed or waiting does not help.
	RetryAfter time.Duration
	// ResetAfter is the time until the limit is unused, or [None].
	ResetAfter time.Duration
}

// Result is the decision of a limiter on a call.
type Result struct {
	// Allowed says that the call may go ahead. If Source is [Unavailable], the numbers have no meaning.
	Allowed bool
	// Granted is the number of units that a call with [Partial] has got. For any other call it is the cost, or 0 if the
	// call is denied.
	Granted int64
	// Numbers are the numbers of the call as a whole. If there are several limits, they may be from different limits,
	// so header fields are made from Limits.
	Numbers
	// Limits are the numbers for each clause.
	Limits []Numbers
	Source Source
	// Never says that the cost is larger than a limit, so that the call can never pass.
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

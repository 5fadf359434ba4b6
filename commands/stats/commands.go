package stats

import "sync/atomic"

// Counter is what one worker knows of one command. Only its worker adds; INFO reads.
type Counter struct {
	Calls    atomic.Int64
	Nanos    atomic.Int64 // of what was measured whenever it ran
	Sampled  atomic.Int64 // nanoseconds of the calls that were timed
	Timed    atomic.Int64 // how many these are
	Rejected atomic.Int64 // refused before they ran: arity, authentication
	Failed   atomic.Int64 // answered with an error
	Denied   atomic.Int64 // of a limiter: answered with "limited"
}

// Estimate is how long all calls have taken together, in nanoseconds, if those that were
// timed are like the others.
func (n *Counter) Estimate() int64 {
	timed := n.Timed.Load()
	if timed == 0 {
		return n.Nanos.Load()
	}
	return n.Nanos.Load() + int64(float64(n.Sampled.Load())/float64(timed)*float64(n.Calls.Load()))
}

// Totals is the sum of a counter over all workers.
type Totals struct {
	Calls, Nanos, Rejected, Failed, Denied int64
}

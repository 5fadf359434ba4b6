package loadgen

import "sync/atomic"

// worker has a part of the flows of a run. The epoll driver has one thread for each worker.
type worker struct {
	plan  *plan
	flows []*flow
	// sessions are the connections of the flows, in the same order.
	sessions []*Session
	// pace is the schedule of the whole worker, nil in a closed loop. paces are the schedules of
	// its flows, for the driver that runs each flow on a goroutine of its own.
	pace  *pace
	paces []*pace
	// clock returns the present instant.
	clock func() int64
	// abandoned is set when the run stops waiting for replies.
	abandoned *atomic.Bool
}

// driver moves the bytes of a worker's flows until they are finished.
type driver func(*worker) error

// over reports whether sending has ended. In a closed loop this depends on now, in an open loop on
// the instant of the next request.
func (l *worker) over(p *pace, now int64) bool {
	if p == nil {
		return l.plan.over(now)
	}
	return l.plan.over(p.next())
}

// unsent returns how many requests were due according to the schedule and were never sent. It
// returns 0 in a closed loop, and for a run that ends after a number of commands.
func (l *worker) unsent() int64 {
	paces := l.paces
	if l.pace != nil && l.pace.k > 0 {
		paces = []*pace{l.pace} // the driver used the schedule of the worker
	}
	var n int64
	for _, p := range paces {
		n += p.before(l.plan.until)
	}
	return n
}

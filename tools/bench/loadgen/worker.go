package loadgen

import "sync/atomic"

// worker is one thread's share of a run.
type worker struct {
	plan  *plan
	flows []*flow
	// sessions are those of the flows.
	sessions []*Session
	// pace is nil in a closed loop; paces are the same for each flow by itself,
	// for a driver that has no thread's handle.
	pace  *pace
	paces []*pace
	// clock returns the present instant.
	clock func() int64
	// abandoned is set when waiting for replies is given up.
	abandoned *atomic.Bool
}

// driver moves the bytes of a worker until its flows are finished.
type driver func(*worker) error

// over reports whether nothing is to be sent any more: at now in a closed loop,
// and by a pace in an open one.
func (l *worker) over(p *pace, now int64) bool {
	if p == nil {
		return l.plan.over(now)
	}
	return l.plan.over(p.next())
}

// unsent returns how many requests of the schedule were due and never sent.
func (l *worker) unsent() int64 {
	paces := l.paces
	if l.pace != nil && l.pace.k > 0 {
		paces = []*pace{l.pace} // the driver went by this one
	}
	var n int64
	for _, p := range paces {
		n += p.before(l.plan.until)
	}
	return n
}

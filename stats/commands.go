package stats

import (
	"sync/atomic"
	"time"
)

// Counter has the figures of one command on one worker. Only the worker's goroutine adds; any
// goroutine may read.
type Counter struct {
	Calls    atomic.Int64
	Exact    atomic.Int64 // calls that were timed individually
	Nanos    atomic.Int64 // nanoseconds that these took
	Timed    atomic.Int64 // the calls that were timed as a sample of the others
	Sampled  atomic.Int64 // nanoseconds that these took
	Rejected atomic.Int64 // refused before they ran: arity, authentication
	Failed   atomic.Int64 // answered with an error
	Denied   atomic.Int64 // of a limiter: answered with "limited"

	histogram atomic.Pointer[Histogram] // nil before the first call that was timed
}

// Estimate returns how long all calls have taken together, in nanoseconds. It assumes that the
// calls without a measurement took as long as the sampled ones.
func (n *Counter) Estimate() int64 {
	exact, timed := n.Nanos.Load(), n.Timed.Load()
	others := n.Calls.Load() - n.Exact.Load()
	if timed == 0 || others <= 0 {
		return exact
	}
	return exact + int64(float64(n.Sampled.Load())/float64(timed)*float64(others))
}

// Observe records that a call took d. calls is how many calls it represents, itself included.
func (n *Counter) Observe(d time.Duration, calls int64) {
	if calls == 1 {
		n.Exact.Add(1)
		n.Nanos.Add(int64(d))
		return
	}
	n.Timed.Add(1)
	n.Sampled.Add(int64(d))
}

// Reset sets everything to zero.
func (n *Counter) Reset() {
	for _, field := range []*atomic.Int64{&n.Calls, &n.Exact, &n.Nanos, &n.Timed, &n.Sampled, &n.Rejected, &n.Failed, &n.Denied} {
		field.Store(0)
	}
	if h := n.histogram.Load(); h != nil {
		h.Reset()
	}
}

// Histogram returns the histogram of the timed calls, and creates it at the first call. Only the
// worker of n may call it.
func (n *Counter) Histogram() *Histogram {
	h := n.histogram.Load()
	if h == nil {
		h = new(Histogram)
		n.histogram.Store(h)
	}
	return h
}

// AddTo adds the timed calls to d.
func (n *Counter) AddTo(d *Distribution) {
	if h := n.histogram.Load(); h != nil {
		d.Add(h)
	}
}

// Totals is the sum of a counter over all workers.
type Totals struct {
	Calls, Nanos, Rejected, Failed, Denied int64
}

// Waiting is the duration of a command that waits or has left its loop. Took is in nanoseconds,
// without the time of waiting. Counted says that the duration is to be recorded when the command is
// answered. Words are its arguments for SLOWLOG; nil if it has been too short for that and is over.
// Only the goroutine that feeds the session uses Counted and Words.
type Waiting struct {
	Took    atomic.Int64
	Counted bool
	Words   []string
}

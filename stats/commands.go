package stats

import (
	"sync/atomic"
	"time"
)

// Counter is what one worker knows of one command. Only its worker adds; INFO reads.
type Counter struct {
	Calls    atomic.Int64
	Exact    atomic.Int64 // calls that were timed whenever they ran
	Nanos    atomic.Int64 // that these took
	Timed    atomic.Int64 // of the other calls: those that were timed
	Sampled  atomic.Int64 // nanoseconds that these took
	Rejected atomic.Int64 // refused before they ran: arity, authentication
	Failed   atomic.Int64 // answered with an error
	Denied   atomic.Int64 // of a limiter: answered with "limited"

	histogram atomic.Pointer[Histogram] // nil before the first call that was timed
}

// Estimate is how long all calls have taken together, in nanoseconds, if those that were
// timed as a sample are like those that were not timed.
func (n *Counter) Estimate() int64 {
	exact, timed := n.Nanos.Load(), n.Timed.Load()
	others := n.Calls.Load() - n.Exact.Load()
	if timed == 0 || others <= 0 {
		return exact
	}
	return exact + int64(float64(n.Sampled.Load())/float64(timed)*float64(others))
}

// Observe notes that calls like this one, of which so many were not timed, took d.
func (n *Counter) Observe(d time.Duration, calls int64) {
	if calls == 1 {
		n.Exact.Add(1)
		n.Nanos.Add(int64(d))
		return
	}
	n.Timed.Add(1)
	n.Sampled.Add(int64(d))
}

// Reset begins to count again.
func (n *Counter) Reset() {
	for _, field := range []*atomic.Int64{&n.Calls, &n.Exact, &n.Nanos, &n.Timed, &n.Sampled, &n.Rejected, &n.Failed, &n.Denied} {
		field.Store(0)
	}
	if h := n.histogram.Load(); h != nil {
		h.Reset()
	}
}

// Histogram is how long the calls took that were timed, made for the worker of n at the
// first.
func (n *Counter) Histogram() *Histogram {
	h := n.histogram.Load()
	if h == nil {
		h = new(Histogram)
		n.histogram.Store(h)
	}
	return h
}

// AddTo adds the calls that were timed to d.
func (n *Counter) AddTo(d *Distribution) {
	if h := n.histogram.Load(); h != nil {
		d.Add(h)
	}
}

// Totals is the sum of a counter over all workers.
type Totals struct {
	Calls, Nanos, Rejected, Failed, Denied int64
}

// Waiting is how long a command has run that waits, or goes on elsewhere. Took is in
// nanoseconds, without waiting. Counted says that it is to be counted so when it is answered,
// and Words is what SLOWLOG shows of it then; nil if it has been too short and does not go on.
// The goroutine that feeds the session uses the latter two.
type Waiting struct {
	Took    atomic.Int64
	Counted bool
	Words   []string
}

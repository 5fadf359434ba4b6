package stats

import (
	"sync/atomic"
	"time"
)

// Counter has the statistics of one command on one worker. Only the worker's goroutine adds to it;
// any goroutine may read it.
type Counter struct {
	Calls    atomic.Int64
	Exact    atomic.Int64 // number of calls that were timed individually
	Nanos    atomic.Int64 // time in nanoseconds that the calls in Exact took
	Timed    atomic.Int64 // number of calls that were timed as a sample of the other calls
	Sampled  atomic.Int64 // time in nanoseconds that the calls in Timed took
	Rejected atomic.Int64 // number of calls that were refused before they ran, for example because of the arity or the user
	Failed   atomic.Int64 // number of calls that were answered with an error
	Denied   atomic.Int64 // number of calls that a limiter has denied

	histogram atomic.Pointer[Histogram] // durations of the timed calls; nil before the first one
}

// Estimate returns the time that all calls took together, in nanoseconds. It assumes that the calls
// that were not timed took as long as the sampled ones.
func (n *Counter) Estimate() int64 {
	exact, timed := n.Nanos.Load(), n.Timed.Load()
	others := n.Calls.Load() - n.Exact.Load()
	if timed == 0 || others <= 0 {
		return exact
	}
	return exact + int64(float64(n.Sampled.Load())/float64(timed)*float64(others))
}

// Observe records that a timed call took d. calls is the number of calls that it represents,
// including itself. With 1, the call counts as exact, otherwise as a sample. Only the worker's
// goroutine may call it.
func (n *Counter) Observe(d time.Duration, calls int64) {
	if calls == 1 {
		n.Exact.Add(1)
		n.Nanos.Add(int64(d))
		return
	}
	n.Timed.Add(1)
	n.Sampled.Add(int64(d))
}

// Reset sets all fields to zero and removes the counts of the histogram.
func (n *Counter) Reset() {
	for _, field := range []*atomic.Int64{&n.Calls, &n.Exact, &n.Nanos, &n.Timed, &n.Sampled, &n.Rejected, &n.Failed, &n.Denied} {
		field.Store(0)
	}
	if h := n.histogram.Load(); h != nil {
		h.Reset()
	}
}

// Histogram returns the histogram of the timed calls. It creates the histogram when it is first
// called. Only the worker's goroutine may call it.
func (n *Counter) Histogram() *Histogram {
	h := n.histogram.Load()
	if h == nil {
		h = new(Histogram)
		n.histogram.Store(h)
	}
	return h
}

// AddTo adds the histogram of the timed calls to d. Any goroutine may call it.
func (n *Counter) AddTo(d *Distribution) {
	if h := n.histogram.Load(); h != nil {
		d.Add(h)
	}
}

// Totals has the sums of the counters of one command over all workers. Nanos is estimated: see
// [Counter.Estimate].
type Totals struct {
	Calls, Nanos, Rejected, Failed, Denied int64
}

// Waiting is the duration so far of a command that waits or has left its event loop. Took is in
// nanoseconds, without the time of waiting. Counted says that the duration has to be recorded when
// the command is answered. Words are the arguments for SLOWLOG; nil if the command was too short
// for SLOWLOG and cannot take longer. Only the goroutine that feeds the session uses Counted and
// Words.
type Waiting struct {
	Took    atomic.Int64
	Counted bool
	Words   []string
}

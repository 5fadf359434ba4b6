package loadgen

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the highest latency that histograms record; higher ones count as this one.
const longest = 60 * time.Second

// newHistogram returns a histogram of nanoseconds with three significant digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(longest), 3)
}

// recorder collects the replies to the flows of one thread. A flow locks it for each batch of
// replies. Except in the goroutine driver, only the live display contends for that lock.
type recorder struct {
	// completed counts every reply, including the replies during the warm-up.
	completed atomic.Int64

	mu sync.Mutex
	// tallies has one element for each template; guarded by mu.
	tallies []tally
	// last is the instant of the last measured reply; guarded by mu.
	last int64
	// lag has the delays with which the requests of an open loop left; guarded by mu.
	lag *hdrhistogram.Histogram
}

// tally holds the results of one template.
type tally struct {
	hist *hdrhistogram.Histogram
	// errors counts error replies. malformed counts replies that do not have the form of a
	// limiter's reply or show another limit. The first of each is kept.
	errors, malformed          int64
	firstError, firstMalformed string
	allowed, denied, granted   int64
}

func newRecorder(templates int) *recorder {
	r := &recorder{tallies: make([]tally, templates), lag: newHistogram()}
	for i := range r.tallies {
		r.tallies[i].hist = newHistogram()
	}
	return r
}

// record records a latency of the template with the index command. now is the arrival of the reply.
// The caller holds mu.
func (r *recorder) record(command int, latency, now int64) {
	add(r.tallies[command].hist, latency)
	r.last = max(r.last, now)
}

// left records lag, the delay with which a request left.
func (r *recorder) left(lag int64) {
	r.mu.Lock()
	add(r.lag, lag)
	r.mu.Unlock()
}

// add records a time, limited to the histogram's range.
func add(h *hdrhistogram.Histogram, nanoseconds int64) {
	_ = h.RecordValue(min(max(nanoseconds, 1), int64(longest))) // there is no error, because the value is in the range of the histogram
}

// merge adds the results of another recorder.
func (t *tally) merge(from *tally) {
	t.hist.Merge(from.hist)
	t.errors += from.errors
	t.malformed += from.malformed
	t.allowed += from.allowed
	t.denied += from.denied
	t.granted += from.granted
	if t.firstError == "" {
		t.firstError = from.firstError
	}
	if t.firstMalformed == "" {
		t.firstMalformed = from.firstMalformed
	}
}

// Live is the state of a run in progress.
type Live struct {
	// Elapsed is the time since measuring began. It is negative during warm-up.
	Elapsed time.Duration
	// Completed counts the replies so far, including the replies during the warm-up. Measured
	// counts those that are part of the result.
	Completed, Measured int64
	Denied, Errors      int64
}

// glance returns the state of a run in progress: the sums over its recorders. Malformed replies
// count as errors.
func glance(recorders []*recorder, elapsed time.Duration) Live {
	live := Live{Elapsed: elapsed}
	for _, r := range recorders {
		live.Completed += r.completed.Load()
		r.mu.Lock()
		for i := range r.tallies {
			t := &r.tallies[i]
			live.Measured += t.hist.TotalCount()
			live.Denied += t.denied
			live.Errors += t.errors + t.malformed
		}
		r.mu.Unlock()
	}
	return live
}

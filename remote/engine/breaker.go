package engine

import (
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	// A node gets only probes, one in each period of probeEvery, after failuresInRow failures in a
	// row. The same happens if at least failuresWindow pipelines were sent within window and at
	// least half of them have failed.
	failuresInRow  = 5
	failuresWindow = 20
	window         = 5 * time.Second
	probeEvery     = time.Second
)

// breaker keeps requests from a node that does not answer. A goroutine that submits a request only
// checks closedTo. A worker that sends to the node calls allow and reports the result.
type breaker struct {
	b    *gobreaker.TwoStepCircuitBreaker[struct{}]
	last atomic.Pointer[Error] // the latest failure of the node
	// open is the reason why no requests are sent to the node; nil if requests are sent.
	open atomic.Pointer[Error]
	// trips and closings are the numbers of times that the breaker has opened and closed again.
	trips, closings atomic.Int64
}

// newBreaker returns a closed breaker. When the breaker opens, it calls changed with open true and
// the reason why. When it closes, it calls changed with false and "". changed must not block.
func newBreaker(changed func(open bool, why string)) *breaker {
	br := &breaker{}
	br.b = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1,
		// The time-out is shorter than probeEvery, so that the breaker is half open when the next
		// probe comes.
		Timeout:  probeEvery - probeEvery/10,
		Interval: window, BucketPeriod: window / 5,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.ConsecutiveFailures >= failuresInRow || c.Requests >= failuresWindow && 2*c.TotalFailures >= c.Requests
		},
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case to == gobreaker.StateClosed:
				br.open.Store(nil)
				br.closings.Add(1)
				changed(false, "")
			case from == gobreaker.StateClosed:
				br.trips.Add(1)
				why := &Error{Reason: Timeout}
				if last := br.last.Load(); last != nil {
					why = last
				}
				br.open.Store(&Error{Reason: why.Reason, Text: "the node is not asked until it answers a probe", NotDone: true})
				changed(true, why.Reason)
			}
		},
	})
	return br
}

// closedTo returns the reason why no requests are sent to the node; nil if requests are sent.
func (br *breaker) closedTo() *Error { return br.open.Load() }

// allow reports in ok whether a pipeline or a probe may be sent to the node. If ok is true, the
// caller must call done once, with nil, or with the reason why the node is unusable.
func (br *breaker) allow() (done func(*Error), ok bool) {
	report, err := br.b.Allow()
	if err != nil {
		return nil, false
	}
	return func(e *Error) {
		if e == nil {
			report(nil)
			return
		}
		br.last.Store(e)
		report(e)
	}, true
}

package engine

import (
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	// A node that failed so often in a row, or for half of so many pipelines within a
	// window, is asked no more but by one probe each probeEvery.
	failuresInRow  = 5
	failuresWindow = 20
	window         = 5 * time.Second
	probeEvery     = time.Second
)

// breaker keeps requests from a node that does not answer. Requests ask closedTo alone;
// whoever sends something asks allow, and says what came of it.
type breaker struct {
	b    *gobreaker.TwoStepCircuitBreaker[struct{}]
	last atomic.Pointer[Error] // why the node failed last
	// open is why the node is not asked; nil if it is.
	open atomic.Pointer[Error]
	// trips and closings count how often it opened, and closed again.
	trips, closings atomic.Int64
}

// newBreaker returns one that calls changed, which may not block, when it opens or closes.
func newBreaker(changed func(open bool, why string)) *breaker {
	br := &breaker{}
	br.b = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1,
		// The probe comes each probeEvery, and has to find it half open.
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

// closedTo is why nothing is sent to the node; nil if all is well.
func (br *breaker) closedTo() *Error { return br.open.Load() }

// allow asks whether something may be sent. done is told what came of it: nil, or why the
// node is of no use.
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

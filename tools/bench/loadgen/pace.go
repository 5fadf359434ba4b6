package loadgen

import "math"

// never is an instant that does not come.
const never = math.MaxInt64

// pace says when the requests of an open loop should leave: one every step
// nanoseconds from start on, whatever happens meanwhile.
type pace struct {
	start, step float64
	k           float64
}

// newPace returns the pace of thread number index of threads, which together send
// rate requests per second. The threads take turns.
func newPace(rate float64, index, threads int) *pace {
	step := 1e9 / rate
	return &pace{start: step * float64(index), step: step * float64(threads)}
}

// next returns the instant at which the next request should leave.
func (p *pace) next() int64 { return int64(p.start + p.k*p.step) }

// take moves on to the request behind.
func (p *pace) take() { p.k++ }

// before returns how many requests are left that should leave before an instant.
func (p *pace) before(until int64) int64 {
	if until == never || p.next() >= until {
		return 0
	}
	return int64(math.Ceil((float64(until)-p.start)/p.step - p.k))
}

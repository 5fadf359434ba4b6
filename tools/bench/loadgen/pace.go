package loadgen

import "math"

// never is an instant after every other one.
const never = math.MaxInt64

// pace is the schedule of an open loop: one request every step nanoseconds from start, independent
// of replies.
type pace struct {
	start, step float64
	k           float64
}

// newPace returns the pace of thread number index of threads, which together send rate requests per
// second. Their requests interleave evenly.
func newPace(rate float64, index, threads int) *pace {
	step := 1e9 / rate
	return &pace{start: step * float64(index), step: step * float64(threads)}
}

// next returns the instant at which the next request should leave.
func (p *pace) next() int64 { return int64(p.start + p.k*p.step) }

func (p *pace) take() { p.k++ }

// before returns how many of the remaining requests should leave before the instant until; 0 if
// until is never.
func (p *pace) before(until int64) int64 {
	if until == never || p.next() >= until {
		return 0
	}
	return int64(math.Ceil((float64(until)-p.start)/p.step - p.k))
}

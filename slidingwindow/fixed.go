package slidingwindow

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/limit"
)

// fixed is the state of FIXED and CALENDAR at one instant: the start and the length of a window in
// nanoseconds, and the units in it.
type fixed struct {
	start  limit.Instant
	window int64
	count  int64
	// left is the time to the end of the window. It is longer than the window if the clock was set
	// back, and not positive if the window is over.
	left time.Duration
}

func (s *fixed) place(c *Call, now limit.Instant, units int64) {
	*s = fixed{start: now, window: int64(c.Window), count: units, left: c.Window}
	if !c.First {
		elapsed := time.Duration(elapsedAt(now, int64(c.Phase), s.window))
		s.start = now.Add(-elapsed)
		s.left -= elapsed
	}
}

// placeRule does what place does, for CALENDAR instead of FIXED.
func (s *fixed) placeRule(r *calendar.Rule, now limit.Instant, units int64) {
	start, end := r.Window(now)
	*s = fixed{start: start, window: int64(end.Sub(start)), count: units, left: max(end.Sub(now), 1)}
}

// roll sets s.left to the rest of the window at now. If the window is over, the count becomes 0.
func (s *fixed) roll(now limit.Instant) {
	s.left = time.Duration(limit.SatSub(s.window, int64(now.Sub(s.start))))
	if s.over() {
		s.count = 0
	}
}

func (s *fixed) over() bool { return s.left <= 0 }

func (s *fixed) used() uint64    { return uint64(s.count) }
func (s *fixed) charged() uint64 { return uint64(s.count) }

func (s *fixed) retry(_, _ int64) time.Duration { return s.left }

func (s *fixed) reset() time.Duration {
	if s.count == 0 {
		return 0
	}
	return s.left
}

func (s *fixed) add(n int64) bool {
	if n > math.MaxInt64-s.count {
		return false
	}
	s.count += n
	return true
}

func (s *fixed) take(n uint64) { s.count -= int64(min(n, uint64(s.count))) }

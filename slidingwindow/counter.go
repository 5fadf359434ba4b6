package slidingwindow

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// counter is the state of COUNTER at one instant. curr is the number of units in the window that
// contains the instant, and prev is the number of units in the window before. The units of prev
// count only in part: they are multiplied by the fraction of the previous window that is less than
// one window ago.
type counter struct {
	start      limit.Instant
	window     int64
	curr, prev int64
	// elapsed is the time since start, 0 <= elapsed < window, in nanoseconds.
	elapsed int64
	// lag is the time by which the clock is behind start. It is 0 unless the clock was set back. In
	// that case the state stays as it is at start until the clock has reached start again.
	lag time.Duration
}

func (s *counter) place(c *Call, now limit.Instant, units int64) {
	*s = counter{start: now, window: int64(c.Window), curr: units}
	if !c.First {
		s.elapsed = elapsedAt(now, int64(c.Phase), s.window)
		s.start = now.Add(-time.Duration(s.elapsed))
	}
}

// roll advances s from the window in which it was stored to the window that contains now.
func (s *counter) roll(now limit.Instant) {
	at := max(now, s.start)
	s.lag = at.Sub(now)
	since := int64(at.Sub(s.start))
	if since < s.window {
		s.elapsed = since
		return
	}
	s.elapsed = elapsedAt(at, floorMod(int64(s.start), s.window), s.window)
	if since-s.elapsed == s.window {
		s.prev = s.curr
	} else {
		s.prev = 0
	}
	s.curr = 0
	s.start = at.Add(-time.Duration(s.elapsed))
}

func (s *counter) used() uint64 {
	overlap := limit.MulDivFloor(s.prev, s.window-s.elapsed, s.window)
	return uint64(overlap) + uint64(s.curr)
}

func (s *counter) charged() uint64 { return uint64(s.curr) }

// decayed returns the earliest time since the start of a window at which at most room of the n
// units of the window before still count. It may be the whole window. room must be from 0 to n-1.
// With W for the window and e for the result, the condition floor(n*(W-e)/W) <= room is equivalent
// to W-e < (room+1)*W/n.
func (s *counter) decayed(n, room int64) int64 {
	return s.window - limit.MulDivCeil(limit.SatAdd(room, 1), s.window, n) + 1
}

func (s *counter) retry(most, quantity int64) time.Duration {
	room := most - quantity
	if s.curr <= room {
		return s.after(s.decayed(s.prev, room-s.curr) - s.elapsed)
	}
	return s.after(s.window - s.elapsed + s.decayed(s.curr, room))
}

func (s *counter) reset() time.Duration {
	if s.curr > 0 {
		return s.after(s.window - s.elapsed + s.decayed(s.curr, 0))
	}
	if s.used() == 0 {
		return 0
	}
	return s.after(s.decayed(s.prev, 0) - s.elapsed)
}

func (s *counter) after(d int64) time.Duration {
	return time.Duration(limit.SatAdd(d, int64(s.lag)))
}

func (s *counter) add(n int64) bool {
	if n > math.MaxInt64-s.curr {
		return false
	}
	s.curr += n
	return true
}

func (s *counter) take(n uint64) {
	taken := min(n, uint64(s.curr))
	s.curr -= int64(taken)
	s.prev -= int64(min(n-taken, uint64(s.prev)))
}

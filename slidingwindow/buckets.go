package slidingwindow

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// buckets is the state of BUCKETS m at one instant. Let W be the window. Slot i covers the times
// since the start of its window from ceil(i*W/m) to ceil((i+1)*W/m), so that W need not be
// divisible by m. A slot stops counting one window after it began.
//
// The depth of a slot is its distance from the current slot: 0 for the current slot, and m-1 for
// the oldest that still counts. In the stored ring, slot i is at position i, whichever window it
// belongs to.
type buckets struct {
	start  limit.Instant
	window int64
	slots  int
	// slot is the index of the current slot in its window.
	slot int
	// elapsed is the time since start, 0 <= elapsed < window, in nanoseconds.
	elapsed int64
	// lag is the time by which the clock is behind the current slot; see counter.lag.
	lag time.Duration

	// ring has the stored counters. shift is the number of slots that have begun since the ring was
	// stored: the counters at depths below shift are invalid. A new state has no ring, and its
	// shift is m.
	ring  []byte
	shift int
	// top and head are the change by the call. Every slot at a depth below top is now empty, and
	// the slot at depth top counts head. At depths above top the ring is valid. top may be m.
	top  int
	head int64
	// sum is the sum of the counts of all slots, with the change by the call.
	sum int64
}

func (s *buckets) place(c *Call, now limit.Instant, units int64) {
	*s = buckets{
		start: now, window: int64(c.Window), slots: c.Slots,
		shift: c.Slots, head: units, sum: units,
	}
	if !c.First {
		s.elapsed = elapsedAt(now, int64(c.Phase), s.window)
		s.start = now.Add(-time.Duration(s.elapsed))
	}
	s.slot = s.slotAt(s.elapsed)
}

// roll advances s from the slot in which it was stored to the slot of now, and computes the sum. If
// now is before the stored slot, s stays at the beginning of that slot, and lag is the difference.
func (s *buckets) roll(now limit.Instant) {
	stored := s.slot
	at := max(now, s.start.Add(time.Duration(s.begin(stored))))
	s.lag = at.Sub(now)
	since := int64(at.Sub(s.start))
	s.elapsed = since
	s.shift = 0
	if since >= s.window {
		s.elapsed = elapsedAt(at, floorMod(int64(s.start), s.window), s.window)
		s.start = at.Add(-time.Duration(s.elapsed))
		s.shift = s.slots
		if since-s.elapsed > s.window {
			s.shift = 2 * s.slots
		}
	}
	s.slot = s.slotAt(s.elapsed)
	s.shift = min(s.shift+s.slot-stored, s.slots)

	live := s.slots - s.shift
	low := max(0, stored-live+1)
	s.sum = s.total(low, stored+1) + s.total(s.slots-(live-(stored+1-low)), s.slots)
	s.head = s.stored(0)
}

// total returns the sum of the counters at the positions from, ..., to-1 of the ring.
func (s *buckets) total(from, to int) (sum int64) {
	for i := from; i < to; i++ {
		sum += slotCount(s.ring, i)
	}
	return sum
}

func (s *buckets) slotAt(elapsed int64) int {
	return int(limit.MulDivFloor(elapsed, int64(s.slots), s.window))
}

// begin returns the time from the start of a window to the beginning of its slot i.
func (s *buckets) begin(i int) int64 {
	return limit.MulDivCeil(int64(i), s.window, int64(s.slots))
}

// position returns the position in the ring of the slot at the given depth.
func (s *buckets) position(depth int) int {
	i := s.slot - depth
	if i < 0 {
		i += s.slots
	}
	return i
}

// stored returns the count of the slot at the given depth, without the change by this call.
func (s *buckets) stored(depth int) int64 {
	if depth < s.shift || depth >= s.slots {
		return 0
	}
	return slotCount(s.ring, s.position(depth))
}

// count returns the count of the slot at the given depth, with the change by this call.
func (s *buckets) count(depth int) int64 {
	switch {
	case depth < s.top:
		return 0
	case depth == s.top:
		return s.head
	}
	return s.stored(depth)
}

func (s *buckets) current() int64 { return s.count(0) }

// leaves returns the time until the slot at the given depth stops counting.
func (s *buckets) leaves(depth int) time.Duration {
	end := s.begin(s.position(depth)) - s.elapsed
	if depth <= s.slot {
		end += s.window
	}
	return s.after(end)
}

// nextSlot returns the time until the next slot begins.
func (s *buckets) nextSlot() time.Duration { return s.after(s.begin(s.slot+1) - s.elapsed) }

func (s *buckets) after(d int64) time.Duration {
	return time.Duration(limit.SatAdd(d, int64(s.lag)))
}

func (s *buckets) used() uint64    { return uint64(s.sum) }
func (s *buckets) charged() uint64 { return uint64(s.sum) }

func (s *buckets) retry(most, quantity int64) time.Duration {
	excess := s.sum - (most - quantity)
	depth := s.slots - 1
	for ; depth > 0; depth-- {
		excess -= s.count(depth)
		if excess <= 0 {
			break
		}
	}
	return s.leaves(depth)
}

func (s *buckets) reset() time.Duration {
	for depth := range s.slots {
		if s.count(depth) > 0 {
			return s.leaves(depth)
		}
	}
	return 0
}

// add adds n units to the current slot. It returns false if the sum would exceed int64. It must not
// be called after take.
func (s *buckets) add(n int64) bool {
	if n > math.MaxInt64-s.sum {
		return false
	}
	s.head += n
	s.sum += n
	return true
}

func (s *buckets) take(n uint64) {
	for n > 0 && s.top < s.slots {
		taken := min(n, uint64(s.head))
		s.sum -= int64(taken)
		if n -= taken; n == 0 {
			s.head -= int64(taken)
			return
		}
		s.top++
		s.head = s.stored(s.top)
	}
}

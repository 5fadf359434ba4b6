package slidingwindow

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// GiveBack reduces the units of the slot that at identifies by up to n, as if they had never been charged there, and
// returns the number of these units. at is a result of [Plan.Slot] for a charge of an earlier state of value. GiveBack
// changes value in place. It returns 0 if n is not positive, or value no longer has the slot. It ignores the present
// instant, so it may reduce a slot that no longer counts.
//
// A LOG that has its maximum number of entries merges an entry into a later one. So in a LOG the
// slot is the first entry that is not earlier than at. The caller must not give back to an entry of
// a LOG that is as old as the window, since the units would be taken from a later entry. A LOG may
// have no entries afterwards. GiveBack takes constant time, except for a LOG: there it moves up to
// half of the entries.
//
// value must pass [Check] in the given mode. The result then passes it, too.
func GiveBack(mode Mode, value []byte, at limit.Instant, n int64) (given int64) {
	if n <= 0 {
		return 0
	}
	switch mode {
	case Counter:
		start := limit.Instant(getInt(value, 0))
		switch at {
		case start:
			return reduce(value, 2, n)
		case start.Add(-time.Duration(getInt(value, 1))):
			return reduce(value, 3, n)
		}
	case Fixed, Calendar:
		if at == limit.Instant(getInt(value, 0)) {
			return reduce(value, 2, n)
		}
	case Buckets:
		var s buckets
		s.decode(value)
		if i, ok := s.slotOf(at); ok {
			return reduce(s.ring, i, n)
		}
	case Log:
		var s log
		s.decode(value)
		given = s.giveBack(at, n)
		s.encodeHeader(value, s.head)
	}
	return given
}

// reduce reduces the count at word i of b by up to n, and returns the difference.
func reduce(b []byte, i int, n int64) int64 {
	count := getInt(b, i)
	n = min(n, count)
	putInt(b, i, count-n)
	return n
}

// beginning returns the instant at which the slot at the given depth begins.
func (s *buckets) beginning(depth int) limit.Instant {
	from := s.begin(s.position(depth))
	if depth > s.slot {
		from -= s.window
	}
	return s.start.Add(time.Duration(from))
}

// slotOf returns the position in the ring of the slot that begins at the given instant. ok is false
// if the ring has no such slot. If W < m, several slots begin at one instant. Only the last of them
// gets units.
func (s *buckets) slotOf(at limit.Instant) (i int, ok bool) {
	since := int64(at.Sub(s.start))
	earlier := since < 0
	if earlier {
		since += s.window
	}
	if since < 0 || since >= s.window {
		return 0, false
	}
	i = s.slotAt(since)
	return i, s.begin(i) == since && (i > s.slot) == earlier
}

// Given is a number of units that are given back to a slot of a LOG.
type Given struct {
	Slot  limit.Instant
	Units int64
}

// GiveBackAll does for a LOG what [GiveBack] does, for several slots in ascending order. It takes time
// linear in the number of entries from the first slot on.
func GiveBackAll(value []byte, gives []Given) {
	if len(gives) == 0 {
		return
	}
	var s log
	s.decode(value)
	i := s.from(gives[0].Slot)
	kept, before, given := i, s.base, uint64(0)
	if i > 0 {
		before = s.at(i - 1).total
	}
	for ; i < s.kept; i++ {
		e := s.at(i)
		units := e.total - before
		before = e.total
		for len(gives) > 0 && gives[0].Slot <= e.at {
			n := min(units, uint64(max(0, gives[0].Units)))
			units, given, gives = units-n, given+n, gives[1:]
		}
		if units > 0 {
			s.put(kept, entry{at: e.at, total: e.total - given})
			kept++
		}
	}
	s.kept = kept
	s.encodeHeader(value, s.head)
}

func (s *log) giveBack(at limit.Instant, n int64) int64 {
	i := s.from(at)
	if i == s.kept {
		return 0
	}
	units := s.units(i)
	given := min(uint64(n), units)
	end := i
	if given == units {
		end++
	}
	s.remove(i, end, given)
	return int64(given)
}

// TakeUnheld brings value to now and gives up to n units back, like a call with a negative
// quantity: those that were used last first. But it leaves in each slot the units that are held
// there. It returns the number of units given back, and changes value in place.
//
// held(after, at) must return the units of all holds whose slot, by [Plan.Slot], is later than after
// and not later than at. In a LOG after is the instant of the entry before, or [limit.MinInstant]
// for the oldest entry that counts. In the other modes the slots of the holds equal at. held is
// called for each slot with units, from the newest to the last that is changed, and may return more
// units than the slot has.
//
// TakeUnheld takes time linear in the number of the slots that it examines. It never makes a value
// shorter, and a LOG may have no entries afterwards. value must pass [Check] under mode; then the
// result does, too.
func TakeUnheld(mode Mode, value []byte, now limit.Instant, n int64, held func(after, at limit.Instant) int64) (taken int64) {
	n = max(n, 0)
	switch mode {
	case Counter:
		var s counter
		s.decode(value)
		s.roll(now)
		s.encode(value)
		taken = takeSlot(value, 2, n, s.start, held)
		taken += takeSlot(value, 3, n-taken, s.start.Add(-time.Duration(s.window)), held)
	case Fixed, Calendar:
		var s fixed
		s.decode(value)
		s.roll(now)
		s.encode(value)
		taken = takeSlot(value, 2, n, s.start, held)
	case Buckets:
		var s buckets
		s.decode(value)
		s.roll(now)
		s.encode(value)
		for depth := 0; depth < s.slots && taken < n; depth++ {
			taken += takeSlot(s.ring, s.position(depth), n-taken, s.beginning(depth), held)
		}
	case Log:
		var s log
		s.decode(value)
		s.roll(now)
		taken = int64(s.takeUnheld(uint64(n), held))
		s.encodeHeader(value, s.head)
	}
	return taken
}

// takeSlot reduces the count at word i of b by up to n, but not below the units that are held in
// the slot at. It returns the difference.
func takeSlot(b []byte, i int, n int64, at limit.Instant, held func(after, at limit.Instant) int64) int64 {
	count := getInt(b, i)
	if n == 0 || count == 0 {
		return 0
	}
	return reduce(b, i, min(n, unheld(count, held(at.Add(-1), at))))
}

// unheld returns the number of units, out of count, that are not held.
func unheld(count, held int64) int64 { return count - min(count, max(held, 0)) }

// takeUnheld removes up to n units that are not held from the kept entries, and returns their
// number. It moves the examined entries that stay to the end of the kept ones, and gives them
// totals that leave the newest total as it is. Then remove closes the gap.
func (s *log) takeUnheld(n uint64, held func(after, at limit.Instant) int64) (taken uint64) {
	i, rest := s.kept, s.kept
	for i > 0 && taken < n {
		i--
		e, after := s.at(i), limit.MinInstant
		if i > 0 {
			after = s.at(i - 1).at
		}
		units := s.units(i)
		part := min(n-taken, uint64(unheld(int64(units), held(after, e.at))))
		if part < units {
			rest--
			s.put(rest, entry{at: e.at, total: e.total + taken})
		}
		taken += part
	}
	s.remove(i, rest, taken)
	return taken
}

// Clear makes value a limiter that has not been used, but keeps its mode, window, phase and number
// of slots. All counts are 0. A LOG has no entries, and its ring is not longer than the smallest
// one that [Plan.Apply] makes. Clear changes value in place, and returns it, possibly shortened.
// value must pass [Check] under mode; then the result does, too.
func Clear(mode Mode, value []byte) []byte {
	switch mode {
	case Counter:
		clear(value[2*word:])
	case Fixed, Calendar:
		clear(value[2*word : fixedSize])
	case Buckets:
		clear(value[bucketHeader:])
	case Log:
		value = value[:min(len(value), logHeader+smallestRing*entrySize)]
		clear(value[word:])
	}
	return value
}

// Reset returns the field ResetAfter that a call with the quantity 0 at now would reply: the time
// until value is as if it had never been used. It is 0 if that is so at now. value must pass
// [Check] under mode. For an unknown mode Reset returns 0.
func Reset(mode Mode, value []byte, now limit.Instant) time.Duration {
	switch mode {
	case Counter:
		var s counter
		s.decode(value)
		s.roll(now)
		return s.reset()
	case Fixed, Calendar:
		var s fixed
		s.decode(value)
		s.roll(now)
		return s.reset()
	case Buckets:
		var s buckets
		s.decode(value)
		s.roll(now)
		return s.reset()
	case Log:
		var s log
		s.decode(value)
		s.roll(now)
		return s.reset()
	}
	return 0
}

// Stored returns a call that continues the windows of value without a conversion: it has their
// Mode, Window, Slots, Phase and Calendar, and the limit math.MaxInt64. The caller sets Quantity, Charge,
// First and LogMaxEntries. [Decide] accepts the call with any of them, although [Call.Validate]
// refuses a LOG whose limit is above LogMaxEntries. value must pass [Check] under mode. For an
// unknown mode the call is not valid.
func Stored(mode Mode, value []byte) Call {
	c := Call{Limit: math.MaxInt64, Mode: mode}
	switch mode {
	case Log:
		c.Window = time.Duration(getInt(value, 0))
	case Calendar:
		c.Calendar = decodeRule(value[fixedSize:])
	case Counter, Fixed, Buckets:
		c.Window = time.Duration(getInt(value, 1))
		c.Phase = PhaseAt(limit.Instant(getInt(value, 0)), c.Window)
	}
	if mode == Buckets {
		c.Slots = (len(value) - bucketHeader) / word
	}
	return c
}

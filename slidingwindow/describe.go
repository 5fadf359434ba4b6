package slidingwindow

import (
	"math"

	"github.com/cellserver/cellserver/limit"
)

// Describe calls emit with each field that RL.INFO shows of a stored value: its windows in
// nanoseconds (start-ns since the Unix epoch), its counts at now, the units in use and reset-ms. It
// returns the units in use, at most math.MaxInt64. It cannot give the remaining units, since the
// limit is not stored. value must pass [Check] under mode. For an unknown mode it emits nothing and
// returns 0.
func Describe(mode Mode, value []byte, now limit.Instant, emit func(field string, value int64)) (used int64) {
	var w window
	switch mode {
	case Counter:
		s := new(counter)
		s.decode(value)
		s.roll(now)
		emit("window-ns", s.window)
		emit("start-ns", int64(s.start))
		emit("current", s.curr)
		emit("previous", s.prev)
		w = s
	case Fixed, Calendar:
		s := new(fixed)
		s.decode(value)
		s.roll(now)
		emit("window-ns", s.window)
		emit("start-ns", int64(s.start))
		w = s
	case Buckets:
		s := new(buckets)
		s.decode(value)
		s.roll(now)
		emit("window-ns", s.window)
		emit("start-ns", int64(s.start))
		emit("slots", int64(s.slots))
		emit("slot", int64(s.slot))
		emit("slot-used", s.current())
		w = s
	case Log:
		s := new(log)
		s.decode(value)
		s.roll(now)
		emit("window-ns", s.window)
		emit("entries", int64(s.size()))
		emit("capacity", int64(entries(s.ring)))
		w = s
	default:
		return 0
	}
	used = int64(min(w.used(), math.MaxInt64))
	emit("used", used)
	emit("reset-ms", limit.MillisUp(w.reset()))
	return used
}

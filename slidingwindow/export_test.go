package slidingwindow

import "github.com/cellserver/cellserver/limit"

// Newest returns the instant that identifies the slot which got the units of the last charge. A
// caller may keep it, and give units back to exactly this slot by [GiveBack]. The slot is the
// current window of FIXED and COUNTER and the current slot of BUCKETS, identified by the instant at
// which it begins, and the newest entry of LOG, identified by its own instant. For a LOG without
// entries, and an unknown mode, Newest returns [limit.MaxInstant].
//
// value must be as the charging call has stored it, and pass [Check] under mode.
func Newest(mode Mode, value []byte) limit.Instant {
	switch mode {
	case Counter, Fixed:
		return limit.Instant(getInt(value, 0))
	case Buckets:
		var s buckets
		s.decode(value)
		return s.beginning(0)
	case Log:
		var s log
		s.decode(value)
		if s.kept > 0 {
			return s.at(s.kept - 1).at
		}
	}
	return limit.MaxInstant
}

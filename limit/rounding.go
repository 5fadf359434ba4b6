package limit

import "time"

// SecondsUp returns d in whole seconds, rounded up; a negative d (a
// [NoRetry]) is -1.
func SecondsUp(d time.Duration) int64 { return roundUp(d, time.Second) }

// MillisUp returns d in whole milliseconds, rounded up; a negative d (a
// [NoRetry]) is -1.
func MillisUp(d time.Duration) int64 { return roundUp(d, time.Millisecond) }

func roundUp(d, unit time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return CeilDiv(int64(d), int64(unit))
}

// CellSeconds returns d in the whole seconds of redis-cell: truncated, plus one
// if at least a whole millisecond is left over. A negative d (a [NoRetry]) is
// -1. The millisecond of grace is redis-cell's (src/cell/mod.rs): 1.0009 s is 1.
func CellSeconds(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	s := int64(d / time.Second)
	if d%time.Second >= time.Millisecond {
		s++
	}
	return s
}

package limit

import "time"

// SecondsUp returns d in whole seconds, rounded up. For a negative d, such as [NoRetry], it returns
// -1.
func SecondsUp(d time.Duration) int64 { return roundUp(d, time.Second) }

// MillisUp returns d in whole milliseconds, rounded up. For a negative d, such as [NoRetry], it
// returns -1.
func MillisUp(d time.Duration) int64 { return roundUp(d, time.Millisecond) }

func roundUp(d, unit time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return CeilDiv(int64(d), int64(unit))
}

// CellSeconds returns d in whole seconds with the rounding of redis-cell (src/cell/mod.rs):
// truncated, plus one if at least a whole millisecond is left over. So 1.0009 s is 1. For a
// negative d, such as [NoRetry], it returns -1.
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

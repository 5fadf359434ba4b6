package arg

import (
	"math"
	"time"
)

// durationUnits are the units of [Duration]. A text that ends like another one is before it.
var durationUnits = [...]struct {
	text string
	is   time.Duration
}{
	{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour},
}

// Duration parses a positive integer with a suffix, such as 500ms, 60s, 1m, 12h or 1d, and returns
// it in units of unit, which must be at most a second. The suffix m is always a minute. Without a
// suffix the integer is in units of unit. ok is false for anything else, for a duration that is no
// multiple of unit, and for an int64 overflow.
func Duration(b []byte, unit time.Duration) (n int64, ok bool) {
	end := len(b)
	for end > 0 && b[end-1] >= 'a' && b[end-1] <= 'z' {
		end--
	}
	n, ok = Int(b[:end])
	if !ok || n < 1 {
		return 0, false
	}
	if end == len(b) {
		return n, true
	}
	for _, u := range durationUnits {
		if string(b[end:]) != u.text {
			continue
		}
		if u.is < unit {
			per := int64(unit / u.is)
			return n / per, n%per == 0
		}
		per := int64(u.is / unit)
		return n * per, n <= math.MaxInt64/per
	}
	return 0, false
}

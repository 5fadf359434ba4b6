package arg

import (
	"math"
	"time"
)

// durationUnits are the suffixes that [Duration] accepts.
var durationUnits = [...]struct {
	text string
	is   time.Duration
}{
	{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour},
}

// Duration parses a positive integer with a suffix, such as 500ms, 60s, 1m, 12h or 1d, and returns
// n, the duration divided by unit. unit must be at most a second. The suffix m is always a minute.
// Without a suffix, n is the integer itself. ok is false for any other text, for a duration that is
// not a multiple of unit, and if the number overflows an int64.
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

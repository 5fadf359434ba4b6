package effort

import "testing"

// Alone skips a test under the race detector. It is for tests whose work is done by one goroutine,
// which has no races: the detector would only make them ten times as long.
func Alone(tb testing.TB) {
	tb.Helper()
	if RaceDetector {
		tb.Skip("one goroutine has no races")
	}
}

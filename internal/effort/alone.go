package effort

import "testing"

// Alone skips a test under the race detector. It is for tests that use one goroutine and so have no
// races: the detector would only make them ten times slower.
func Alone(tb testing.TB) {
	tb.Helper()
	if RaceDetector {
		tb.Skip("one goroutine has no races")
	}
}

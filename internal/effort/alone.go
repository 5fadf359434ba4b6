package effort

import "testing"

// Alone skips a test if the race detector is enabled. It is for tests that use only one goroutine
// and so have no races, which the detector would make ten times slower.
func Alone(tb testing.TB) {
	tb.Helper()
	if RaceDetector {
		tb.Skip("one goroutine has no races")
	}
}

// Package bubble runs tests in bubbles of virtual time (testing/synctest). It has the one workaround
// that they need.
package bubble

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/cellserver/cellserver/internal/effort"
)

// Test runs f in a bubble, like [synctest.Test]. With the race detector only one processor executes
// Go code until it returns: the timers of a bubble share one context of the detector, which crashes
// if two threads run timers at the same time (golang/go#78156). Races are still found, because the
// detector compares what is ordered, not what happens at the same time. Test changes GOMAXPROCS, so
// it is not for tests that run in parallel.
func Test(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if effort.RaceDetector {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	synctest.Test(t, f)
}

//go:build race

package lua_test

// raceDetector is whether this run is under the race detector. It has slices.Grow make what it
// appends, too, and a script of one goroutine, which it slows tenfold, has nothing to tell it.
const raceDetector = true

//go:build !race

package dense

// raceDetector is true if the race detector is compiled in.
const raceDetector = false

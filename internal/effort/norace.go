//go:build !race

package effort

// RaceDetector is whether the race detector runs, with which figures of memory mean nothing.
const RaceDetector = false

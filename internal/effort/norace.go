//go:build !race

package effort

// RaceDetector says whether the race detector is enabled. If it is, measurements of memory have no
// meaning.
const RaceDetector = false

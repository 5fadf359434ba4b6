//go:build race

package effort

// RaceDetector says whether the race detector is enabled. Memory figures have no meaning with it.
const RaceDetector = true

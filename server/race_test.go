//go:build race

package server_test

// raceDetector is whether this run is slowed and fattened by the race detector, which
// makes figures of memory meaningless.
const raceDetector = true

//go:build race

package keyspace_test

// raceDetector says whether the tests run under it.
const raceDetector = true

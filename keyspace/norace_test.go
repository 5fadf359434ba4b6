//go:build !race

package keyspace_test

const raceDetector = false

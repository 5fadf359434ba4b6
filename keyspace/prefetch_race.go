//go:build race

package keyspace

const raceDetector = true

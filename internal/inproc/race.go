//go:build race

package inproc

// RaceDetector is whether the race detector runs, with which figures of memory mean nothing.
const RaceDetector = true

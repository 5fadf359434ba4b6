//go:build race

package dense

const raceDetector = true

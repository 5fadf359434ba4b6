//go:build !race

package dense

const raceDetector = false

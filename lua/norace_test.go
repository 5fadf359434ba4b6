//go:build !race

package lua_test

// raceDetector is described in race_test.go.
const raceDetector = false

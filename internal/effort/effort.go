// Package effort determines how much work a randomized or exhaustive test does. With `go test`,
// tests do little work, so that all of them take minutes. `make long` sets the environment variable
// CELL_LONG to 1, which makes them do much more. CELL_LONG=n makes them do n times as much as
// CELL_LONG=1, for a run that takes a night.
package effort

import (
	"os"
	"strconv"
)

// Steps returns the number of steps that a test should do: few if CELL_LONG is not set, otherwise
// many multiplied by CELL_LONG. If CELL_LONG is not a number above 0, it counts as not set.
func Steps(few, many int) int {
	if n := factor(); n > 0 {
		return many * n
	}
	return few
}

// Long reports whether a test should do as much work as it can, because CELL_LONG is set.
func Long() bool { return factor() > 0 }

func factor() int {
	n, err := strconv.Atoi(os.Getenv("CELL_LONG"))
	if err != nil {
		return 0
	}
	return n
}

// Package effort determines how much work a randomized or exhaustive test does. `go test` does
// little, so that the suite takes minutes. `make long` sets CELL_LONG to 1 and does much.
// CELL_LONG=n does n times as much, for a night.
package effort

import (
	"os"
	"strconv"
)

// Steps returns the number of steps of a test: few, or many times CELL_LONG. A CELL_LONG that is
// not a number above 0 counts as not set.
func Steps(few, many int) int {
	if n := factor(); n > 0 {
		return many * n
	}
	return few
}

// Long reports whether a test should do everything that it can.
func Long() bool { return factor() > 0 }

func factor() int {
	n, err := strconv.Atoi(os.Getenv("CELL_LONG"))
	if err != nil {
		return 0
	}
	return n
}

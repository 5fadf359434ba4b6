// Package long says whether tests are to do what takes minutes: make long sets CELL_LONG=1.
// Otherwise a test of random steps or seeds does a small part of them.
package long

import "os"

// variable asks for long tests.
const variable = "CELL_LONG"

// Wanted reports whether long tests are wanted.
func Wanted() bool { return os.Getenv(variable) != "" }

// Of returns all where long tests are wanted, and few elsewhere: how many steps or seeds a test
// has.
func Of[N int | uint64](few, all N) N {
	if Wanted() {
		return all
	}
	return few
}

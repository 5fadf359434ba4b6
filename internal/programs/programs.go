// Package programs finds the programs and libraries that a test needs and not every machine has. If
// one is missing, a local test is skipped, with one line that begins with SKIP. With CI=true, where
// make setup must have installed it, the test fails. A test that cannot run for a reason that make
// setup cannot remove, such as the operating system or a missing permission, calls Skip itself.
package programs

import (
	"os"
	"os/exec"
	"testing"
)

// Required reports whether a missing program makes a test fail, because the environment has
// CI=true.
func Required() bool { return os.Getenv("CI") == "true" }

// Missing ends the test because something is missing, which format and args name, such as "no
// promtool". The test fails if Required returns true, else it is skipped.
func Missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if Required() {
		tb.Fatalf(format+": CI has to have it (make setup)", args...)
	}
	tb.Skipf("SKIP: "+format+" (make setup installs it)", args...)
}

// Find returns the path of the program called name. If there is none, the test ends as by
// [Missing].
func Find(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(tb, "no %s", name)
	}
	return path
}

// Need does the same as Find for several programs that the test starts by their names.
func Need(tb testing.TB, names ...string) {
	tb.Helper()
	for _, name := range names {
		Find(tb, name)
	}
}

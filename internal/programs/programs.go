// Package programs finds the programs and libraries that a test needs and not every machine has.
// Without one, a local test is skipped with one SKIP line. With CI=true, where make setup must have
// installed it, the test fails. A test that cannot run for a reason that make setup cannot fix,
// such as the operating system or a missing permission, calls Skip itself.
package programs

import (
	"os"
	"os/exec"
	"testing"
)

// Required reports whether a missing program is a failure: the environment has CI=true.
func Required() bool { return os.Getenv("CI") == "true" }

// Missing ends the test because it lacks something that format names, such as "no promtool".
func Missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if Required() {
		tb.Fatalf(format+": CI has to have it (make setup)", args...)
	}
	tb.Skipf("SKIP: "+format+" (make setup installs it)", args...)
}

// Find returns the path of a program. If there is none the test ends as with [Missing].
func Find(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(tb, "no %s", name)
	}
	return path
}

// Need is Find for several programs that are started by their names.
func Need(tb testing.TB, names ...string) {
	tb.Helper()
	for _, name := range names {
		Find(tb, name)
	}
}

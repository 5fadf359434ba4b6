// Package programs is what a test does without a program, or a library, that it needs and that
// not every machine has: locally one SKIP line, and with CI=true, where make setup has to have
// installed it, a failure. A test that cannot run for a reason that make setup does not mend, such
// as the system or a right, calls Skip by itself and says so.
package programs

import (
	"os"
	"os/exec"
	"testing"
)

// Required reports whether nothing may be missing: the environment has CI=true.
func Required() bool { return os.Getenv("CI") == "true" }

// Missing ends the test because it lacks what format says: "no promtool".
func Missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if Required() {
		tb.Fatalf(format+": CI has to have it (make setup)", args...)
	}
	tb.Skipf("SKIP: "+format+" (make setup installs it)", args...)
}

// Find returns the path of a program. A test without it ends as by [Missing].
func Find(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(tb, "no %s", name)
	}
	return path
}

// Need is Find of several programs that are started by their names.
func Need(tb testing.TB, names ...string) {
	tb.Helper()
	for _, name := range names {
		Find(tb, name)
	}
}

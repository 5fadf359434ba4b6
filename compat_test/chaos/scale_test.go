package chaos_test

import (
	"os"
	"testing"
	"time"
)

// full reports whether the tests run at the size at which their figures are published:
// CHAOS_FULL=1, which takes about an hour.
var full = os.Getenv("CHAOS_FULL") != ""

// scaled is few, or many at full size.
func scaled(few, many int) int {
	if full {
		return many
	}
	return few
}

// lasts is how long a load goes on.
func lasts(short, long time.Duration) time.Duration {
	if full {
		return long
	}
	return short
}

// skipShort skips what needs a cluster for long: the race detector has enough to see in the
// other tests.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("clusters that change are left to the full test run")
	}
}

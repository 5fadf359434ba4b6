package limiters_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestTwoLimitsAreToldToTheLog: the warning is logged at most once a minute, names no key, and
// does not come for a limit that was changed.
func TestTwoLimitsAreToldToTheLog(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		c := s.Dial()
		told := func() int { return strings.Count(s.Log.String(), "two limits share a key") }
		both := func(key string) {
			require.Contains(t, c.Do("SW.ALLOW", key, "300", "60", "FIXED"), "*5")
			require.Contains(t, c.Do("SW.ALLOW", key, "300", "86400", "FIXED", "ANCHOR", "FIRST"), "*5")
		}
		both("secret1")
		require.Zero(t, told(), "a changed limit")
		for range 10 {
			both("secret1")
			both("secret2")
		}
		require.Equal(t, 1, told())
		w.Advance(time.Minute)
		both("secret1")
		require.Equal(t, 2, told())
		require.NotContains(t, s.Log.String(), "secret")
		require.Contains(t, c.Do("RL.MULTI", "2", "secret1", "b", "SW", "300", "60", "FIXED", "SW", "9", "60"), "*5")
		require.Equal(t, "43", c.Info("two-limits-calls"))
	})
}

package remote

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/effort"
)

// TestServersShareAHotKey: when the callers of all servers use one key, every server gets its
// turns, and few writes fail.
func TestServersShareAHotKey(t *testing.T) {
	lasts := time.Duration(effort.Steps(300, 4000)) * time.Millisecond
	for _, servers := range []int{2, 4, 8} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			t.Parallel()
			c := newCloud(uint64(servers))
			c.service = 5 * time.Microsecond
			var all []*server
			var told []*toll
			for range servers {
				s := serve(c.join(network{there: 80 * time.Microsecond, back: 80 * time.Microsecond, jitter: 40 * time.Microsecond}), bounds())
				all = append(all, s)
				told = append(told, s.callers(64, 0, lasts, func() *decide.Ask { return take(t, "k", 1<<40, 1) }))
			}
			c.runUntil(lasts + time.Second)
			var decided, conflicts, least, most int64
			for i, s := range all {
				n := told[i].admitted
				require.Zero(t, told[i].failed)
				if i == 0 || n < least {
					least = n
				}
				decided, most, conflicts = decided+n, max(most, n), conflicts+s.count.conflicts.Load()
			}
			t.Logf("%d decisions/s, %.3f conflicts each, slowest/fastest %.2f", decided*int64(time.Second)/int64(lasts), float64(conflicts)/float64(decided), float64(least)/float64(most))
			require.Equal(t, decided, charged(c.look([]byte("cs:k")), c.civil(), time.Hour))
			require.Less(t, float64(conflicts)/float64(decided), 0.2)
			require.Greater(t, float64(least)/float64(most), 0.5)
		})
	}
}

package manager_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/server"
)

// killedAt runs a server that starts at an instant, on a boot without an ID, and returns the disk
// after a kill.
func killedAt(w *inproc.World, at limit.Instant, calls func(clock *clocktest.Clock, c *inproc.Client)) *faultfs.FS {
	clock := clocktest.New(at)
	n := w.StartWith(func(o *server.Options) { o.Clock = clock }, "--appendonly", "yes")
	calls(clock, n.Dial())
	return n.Left()
}

func millis(t *testing.T, reply string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.Trim(reply, ":\r\n"))
	require.NoError(t, err)
	return n
}

// TestTimeNeverGoesBack: after a reboot with a wall clock that is behind, time continues at the
// last effect or later, not at the last recorded reading of the clock.
func TestTimeNeverGoesBack(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const year2200 = limit.Instant(230 * 365 * 24 * int64(time.Hour))
		disk := killedAt(w, year2200, func(clock *clocktest.Clock, c *inproc.Client) {
			c.Do("CL.THROTTLE", "first", "15", "30", "600")
			clock.Advance(900 * time.Millisecond)
			require.Equal(t, inproc.Five(0, 1, 0, -1, 100), c.Do("CL.THROTTLE", "last", "0", "1", "100"))
		})
		left := millis(t, w.StartOn(disk, "--appendonly", "yes").Dial().Do("PTTL", "last"))
		require.LessOrEqual(t, left, 100_000)
		require.GreaterOrEqual(t, left, 99_000, "the log notes the time up to a second ahead")
	})
}

// TestMaxForwardJump: a wall clock that is years ahead after a reboot is believed, up to the jump
// that the option permits.
func TestMaxForwardJump(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const later = inproc.Epoch + limit.Instant(3*365*24*int64(time.Hour))
		disk := killedAt(w, inproc.Epoch, func(_ *clocktest.Clock, c *inproc.Client) {
			require.Equal(t, inproc.Five(0, 1, 0, -1, 7200), c.Do("CL.THROTTLE", "k", "0", "1", "7200"))
		})
		believed := disk.Kill()
		f := w.StartAt(later, disk, "--appendonly", "yes", "--clock-max-forward-jump", "3600")
		left := millis(t, f.Dial().Do("PTTL", "k"))
		require.LessOrEqual(t, left, 3_600_000)
		require.GreaterOrEqual(t, left, 3_599_000)
		require.Contains(t, f.Log.String(), "clock-max-forward-jump")
		now, err := strconv.ParseInt(strings.Split(f.Dial().Do("TIME"), "\r\n")[2], 10, 64)
		require.NoError(t, err)
		require.InDelta(t, int64(later)/int64(time.Second), now, 1, "what people mean by a time is the wall clock's")
		require.Equal(t, ":-2\r\n", w.StartAt(later, believed, "--appendonly", "yes").Dial().Do("PTTL", "k"))
	})
}

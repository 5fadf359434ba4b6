package server_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/limit"
)

// killedAt runs a server at an instant of its own, on no boot that anybody knows,
// and returns the directory as it was before the server stopped.
func killedAt(t *testing.T, at limit.Instant, calls func(f *fixture, c *client)) string {
	t.Helper()
	dir, copied := t.TempDir(), t.TempDir()
	c, err := config.Load([]string{"--transport", "goroutine", "--dir", dir, "--appendonly", "yes"}, nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := launchAt(t, c, l, nil, clocktest.New(at), func() {})
	calls(f, f.dial())
	require.NoError(t, os.CopyFS(filepath.Join(copied, "appendonlydir"), os.DirFS(filepath.Join(dir, "appendonlydir"))))
	f.end()
	return copied
}

// resumed starts a server on dir with the clock of the system.
func resumed(t *testing.T, dir string, flags ...string) *fixture {
	t.Helper()
	c, err := config.Load(append([]string{"--transport", "goroutine", "--dir", dir, "--appendonly", "yes"}, flags...), nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := launchAt(t, c, l, nil, nil, func() {})
	eventually(t, "loaded", func() bool { return !f.Engine().Loading() })
	return f
}

func millis(t *testing.T, reply string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.Trim(reply, ":\r\n"))
	require.NoError(t, err)
	return n
}

// TestTimeNeverGoesBack: after a reboot with a wall clock that is behind, time goes
// on from the last effect at the earliest, not from the last time that it was noted.
func TestTimeNeverGoesBack(t *testing.T) {
	const year2200 = limit.Instant(230 * 365 * 24 * int64(time.Hour))
	dir := killedAt(t, year2200, func(f *fixture, c *client) {
		c.do("CL.THROTTLE", "first", "15", "30", "600")
		f.clock.Advance(900 * time.Millisecond)
		require.Equal(t, five(0, 1, 0, -1, 100), c.do("CL.THROTTLE", "last", "0", "1", "100"))
	})
	left := millis(t, resumed(t, dir).dial().do("PTTL", "last"))
	require.LessOrEqual(t, left, 100_000)
	require.Greater(t, left, 90_000)
}

// TestMaxForwardJump: a wall clock that is years ahead after a reboot is believed,
// or as far as the option says.
func TestMaxForwardJump(t *testing.T) {
	dir := killedAt(t, epoch, func(_ *fixture, c *client) {
		require.Equal(t, five(0, 1, 0, -1, 7200), c.do("CL.THROTTLE", "k", "0", "1", "7200"))
	})
	f := resumed(t, dir, "--clock-max-forward-jump", "3600")
	left := millis(t, f.dial().do("PTTL", "k"))
	require.LessOrEqual(t, left, 3_600_000)
	require.Greater(t, left, 3_500_000)
	require.Contains(t, f.log.String(), "clock-max-forward-jump")
	now, err := strconv.ParseInt(strings.Split(f.dial().do("TIME"), "\r\n")[2], 10, 64)
	require.NoError(t, err)
	require.InDelta(t, time.Now().Unix(), now, 30, "what people mean by a time is the wall clock's")
	f.end()
	require.Equal(t, ":-2\r\n", resumed(t, killedAt(t, epoch, func(_ *fixture, c *client) {
		c.do("CL.THROTTLE", "k", "0", "1", "7200")
	})).dial().do("PTTL", "k"))
}

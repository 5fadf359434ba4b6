package limiters_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestTopKnowsCountersWithBounds: INCREX counts as a limiter, although it belongs to another
// group of commands.
func TestTopKnowsCountersWithBounds(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		c := s.Dial()
		for range 2 {
			c.Do("INCREX", "hits", "BYINT", "2", "UBOUND", "3", "EXAT", "9999999999", "ENX")
		}
		c.Do("INCREX", "part", "BYFLOAT", "1.5", "UBOUND", "1", "PX", "500", "SATURATE")
		require.Equal(t, "*2\r\n$4\r\nhits\r\n:1\r\n", c.Do("RL.TOP"))
		seen := s.Engine().Seen.Denied(s.Engine().Options.Now()).Keys
		require.Len(t, seen, 1)
		require.Equal(t, "UBOUND 3", seen[0].Args, "an instant and an amount differ by call")
		require.Equal(t, len(seen[0].Args), seen[0].Limit)
	})
}

// TestTopKeepsTheKeysOfScripts: the next call of a script overwrites the memory of a number that
// the script passed as a key, and RL.TOP still shows the right key.
func TestTopKeepsTheKeysOfScripts(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		c.Do("EVAL", `for i = 1, 64 do redis.call('CL.THROTTLE', 111111, '0', '1', '60') end
			for i = 1, 7 do redis.call('CL.THROTTLE', 222222, '0', '1', '60', '0') end`, "0")
		require.Regexp(t, `^\*2\r\n\$6\r\n111111\r\n:(60|68)\r\n$`, c.Do("RL.TOP"), "63 refusals, of which most are sampled")
	})
}

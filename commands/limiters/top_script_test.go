package limiters_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestTopKeepsTheKeysOfScripts: a number that a script gives as a key is written where
// its next call writes its own.
func TestTopKeepsTheKeysOfScripts(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		c.Do("EVAL", `for i = 1, 64 do redis.call('CL.THROTTLE', 111111, '0', '1', '60') end
			for i = 1, 7 do redis.call('CL.THROTTLE', 222222, '0', '1', '60', '0') end`, "0")
		require.Regexp(t, `^\*2\r\n\$6\r\n111111\r\n:(60|68)\r\n$`, c.Do("RL.TOP"), "63 refusals, of which most are sampled")
	})
}

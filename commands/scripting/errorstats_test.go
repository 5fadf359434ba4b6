package scripting_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// errorstats returns the counts of each kind of error in INFO.
func errorstats(c *inproc.Client) map[string]string {
	counts := map[string]string{}
	for line := range strings.SplitSeq(c.Do("INFO", "errorstats"), "\r\n") {
		if word, ok := strings.CutPrefix(line, "errorstat_"); ok {
			word, count, _ := strings.Cut(word, ":count=")
			counts[word] = count
		}
	}
	return counts
}

// TestErrorsOfScriptsAreCountedByTheirFirstWord: an error that a script returns or raises is
// counted by its own first word, an error of a command is counted once, and an error that the
// script catches counts only for the command.
func TestErrorsOfScriptsAreCountedByTheirFirstWord(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		require.Equal(t, inproc.OK, c.Do("SET", "s", "v"))
		for _, script := range []string{
			"return redis.error_reply('MYERR x')",
			"return {err = 'MYERR y'}",
			"error({err = 'OTHER x'})",
			"local function f() error({err = 'OTHER y'}) end f()",
			"return redis.call('LPUSH', 's', 'v')",
			"return redis.pcall('LPUSH', 's', 'v')",
			"error('no word of its own')",
			"return #string.rep('x', 1e9)",
		} {
			require.Equal(t, byte('-'), c.Do("EVAL", script, "0")[0], script)
		}
		require.Equal(t, ":1\r\n", c.Do("EVAL", "redis.pcall('LPUSH', 's', 'v') return 1", "0"))
		require.Equal(t, map[string]string{"MYERR": "2", "OTHER": "2", "WRONGTYPE": "3", "ERR": "2"}, errorstats(c))
	})
}

package scripting_test

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestLoadAndCallInOneTransaction: EVALSHA finds a script that SCRIPT LOAD has added earlier in
// the same transaction, even if its duration is unknown or its text is long.
func TestLoadAndCallInOneTransaction(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		loop := "local n = 0 for i = 1, ARGV[1] do n = n + redis.call('INCR', KEYS[1]) end return n"
		for name, source := range map[string]string{
			"short":        "return redis.call('INCR', KEYS[1])",
			"a loop":       loop,
			"a long text":  "-- " + strings.Repeat("x", 5000) + "\n" + loop,
			"without keys": "while true do return #ARGV end",
		} {
			c := s.Dial()
			sum := sha1.Sum([]byte(source))
			sha := hex.EncodeToString(sum[:])
			c.Do("FLUSHALL")
			require.Equal(t, inproc.OK, c.Do("MULTI"), name)
			for _, call := range [][]string{
				{"SCRIPT", "LOAD", source}, {"EVALSHA", sha, "1", "k", "3"}, {"EVALSHA_RO", strings.Repeat("0", 40), "0"}, {"GET", "k"},
			} {
				require.Equal(t, "+QUEUED\r\n", c.Do(call...), name)
			}
			reply := c.Do("EXEC")
			require.True(t, strings.HasPrefix(reply, "*4\r\n$40\r\n"+sha+"\r\n:"), "%s: %q", name, reply)
			require.Contains(t, reply, "-NOSCRIPT", "of a script that nobody has brought")
			require.Equal(t, inproc.OK, c.Do("SCRIPT", "FLUSH"))
		}
	})
}

package commands_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/internal/inproc"
)

// TestOwnCommandsNameTheArgumentInTheWay: the errors of cellserver's own commands name the wrong
// argument. The texts of Redis and redis-cell are contracts and stay unchanged.
func TestOwnCommandsNameTheArgumentInTheWay(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		c := s.Dial()
		own := map[string]string{
			"sw.allow":   "SW.ALLOW k 1 60",
			"tb.acquire": "TB.ACQUIRE k 1 1 60",
			"cc.acquire": "CC.ACQUIRE k 1 60 m",
			"cc.list":    "CC.LIST k",
			"cc.renew":   "CC.RENEW k m 60",
			"rl.commit":  "RL.COMMIT k id 1",
			"rl.cancel":  "RL.CANCEL k id",
			"rl.renew":   "RL.RENEW k id 60",
			"rl.multi":   "RL.MULTI 1 k TB 1 1 60",
			"rl.use":     "RL.USE p k",
			"rl.info":    "RL.INFO k",
			"rl.top":     "RL.TOP",
		}
		for _, cmd := range commands.NewTable().Top() {
			// A command of fixed length has no options.
			if cmd.Categories&command.CatRateLimit == 0 || cmd.Flags&command.FlagModule != 0 || cmd.Arity > 0 {
				continue
			}
			require.Contains(t, own, cmd.Name, "a command that this test does not know")
			for word, shown := range map[string]string{
				"nosuch":                        "nosuch",
				"\r\n+OK\r\n":                   `\x0d\x0a+OK\x0d\x0a`,
				"\xff\x00'":                     `\xff\x00\'`,
				"w" + strings.Repeat("x", 9999): "w" + strings.Repeat("x", 63) + "...",
			} {
				got := c.Do(append(strings.Fields(own[cmd.Name]), word)...)
				require.Equal(t, "-ERR syntax error near '"+shown+"'\r\n", got, cmd.Name)
			}
		}
		for _, call := range []string{
			"SET k v nosuch", "GETEX k nosuch", "SCAN 0 nosuch x", "ZADD z NX XX 1 a", "LPOS l a nosuch",
			"ZRANGE z 0 1 nosuch", "CLIENT LIST nosuch", "HELLO 3 nosuch",
		} {
			require.NotContains(t, c.Do(strings.Fields(call)...), "near", call)
		}
		require.Equal(t, "-ERR syntax error\r\n", c.Do("SET", "k", "v", "nosuch"))
		require.Equal(t, "-Cell error: Store error: Couldn't parse as integer: nosuch\r\n", c.Do("CL.THROTTLE", "k", "1", "1", "nosuch"))
	})
}

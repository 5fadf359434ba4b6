package server_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// errorstats returns INFO errorstats by word.
func (c *client) errorstats() map[string]string {
	c.t.Helper()
	counts := map[string]string{}
	for _, line := range strings.Split(c.do("INFO", "errorstats"), "\r\n") {
		if word, ok := strings.CutPrefix(line, "errorstat_"); ok {
			word, count, _ := strings.Cut(word, ":count=")
			counts[word] = count
		}
	}
	return counts
}

// TestErrorstatsCountEveryKindOfError: whatever way an error takes to a client, it is
// counted once by its first word, and the command that failed or was rejected is.
func TestErrorstatsCountEveryKindOfError(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f, c, disk := startFull(t, kind, t.TempDir())
		disk.full.Store(false)
		eventually(t, "the disk works again", func() bool { return strings.HasPrefix(c.do("SET", "s", "v"), "+OK") })
		require.Equal(t, ":1\r\n", c.do("DEL", "k"))
		require.Equal(t, "+OK\r\n", c.do("CONFIG", "RESETSTAT"))
		id, other := c.id(), f.dial()

		broken := f.dial()
		broken.send("*x\r\n")
		require.Equal(t, "-ERR Protocol error: invalid multibulk length\r\n", broken.reply())
		broken.expectEnd()

		c.send("AUTH a b c\r\nGET\r\nLPUSH s v\r\nnosuch\r\nCLIENT nosuch\r\nGET " + strings.Repeat("k", 20_000) + "\r\n")
		for range 6 {
			require.Equal(t, byte('-'), c.reply()[0])
		}
		f.fill(other)
		c.send(waitWindow)
		eventually(t, "it waits", func() bool { return f.Keyspace().Waiting() == 1 })
		require.Equal(t, ":1\r\n", other.do("CLIENT", "UNBLOCK", id, "ERROR"))
		require.Contains(t, c.reply(), "-UNBLOCKED")
		c.send("CONFIG SET maxmemory 1\r\n")
		c.expect("+OK\r\n")
		require.Contains(t, c.do("SET", "new", "v"), "-OOM")
		require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "maxmemory", "0"))
		require.Contains(t, c.do("EVAL", "local function f(n) if n > 0 then return f(n - 1) end return redis.error_reply('MINE of a loop') end return f(50000)", "0"), "-MINE")
		c.send("CLIENT REPLY OFF\r\nLPUSH s v\r\nCLIENT REPLY ON\r\n")
		c.expect("+OK\r\n")
		require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "requirepass", "secret"))
		require.Contains(t, f.dial().do("GET", "s"), "-NOAUTH")
		require.Contains(t, f.dial().do("AUTH", "wrong"), "-WRONGPASS")
		require.Equal(t, "+OK\r\n", c.do("AUTH", "secret"))
		disk.full.Store(true)
		require.Contains(t, c.do("SET", "s", "v2"), "-MISCONF")

		require.Equal(t, map[string]string{
			"ERR": "6", "WRONGTYPE": "2", "UNBLOCKED": "1", "OOM": "1", "MINE": "1", "NOAUTH": "1", "WRONGPASS": "1", "MISCONF": "1",
		}, c.errorstats())
		require.Equal(t, "14", c.info("total_error_replies"))
		for field, want := range map[string]string{
			"cmdstat_lpush": "calls=2,*,rejected_calls=0,failed_calls=2", "cmdstat_get": "calls=0,*,rejected_calls=3,failed_calls=0",
			"cmdstat_sw.allow": "calls=2,*,rejected_calls=0,failed_calls=1", "cmdstat_eval": "calls=1,*,rejected_calls=0,failed_calls=1",
			"cmdstat_auth": "calls=3,*,rejected_calls=0,failed_calls=2",
		} {
			calls, rest, _ := strings.Cut(want, "*")
			require.Regexp(t, "^"+calls+".*"+rest+"$", c.info(field), field)
		}
		disk.full.Store(false)
	})
}

// TestCommandstatsShowTimeForEveryCommandThatRan: no command that has run shows 0
// microseconds.
func TestCommandstatsShowTimeForEveryCommandThatRan(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		c := start(t, kind).dial()
		c.send("PING\r\nSET s v\r\nGET s\r\nPING\r\nEVAL \"return redis.call('strlen',KEYS[1])\" 1 s\r\nMULTI\r\nINCR n\r\nEXEC\r\nCONFIG RESETSTAT\r\nPING\r\nTTL s\r\n")
		for range 11 {
			c.reply()
		}
		for range 2 { // the second time with INFO
			for _, line := range strings.Split(bulkText(t, c.do("INFO", "commandstats")), "\r\n") {
				require.NotContains(t, line, "usec=0,", line)
				require.NotContains(t, line, "usec_per_call=0.00,", line)
			}
		}
	})
}

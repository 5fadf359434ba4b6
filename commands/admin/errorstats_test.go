package admin_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/internal/inproc"
)

// errorstats returns INFO errorstats by the first word of the error.
func errorstats(c *inproc.Client) map[string]string {
	counts := map[string]string{}
	for _, line := range strings.Split(c.Do("INFO", "errorstats"), "\r\n") {
		if word, ok := strings.CutPrefix(line, "errorstat_"); ok {
			word, count, _ := strings.Cut(word, ":count=")
			counts[word] = count
		}
	}
	return counts
}

// TestErrorstatsCountEveryKindOfError: whichever way an error reaches a client, it is counted
// once by its first word, and so is the command that failed or was rejected.
func TestErrorstatsCountEveryKindOfError(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--appendonly", "yes")
		c := f.Dial()
		require.Equal(t, "+OK\r\n", c.Do("SET", "s", "v"))
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "RESETSTAT"))
		id, other := c.ID(), f.Dial()

		broken := f.Dial()
		broken.Send("*x\r\n")
		require.Equal(t, "-ERR Protocol error: invalid multibulk length\r\n", broken.Reply())
		broken.ExpectEnd()

		c.Send("AUTH a b c\r\nGET\r\nLPUSH s v\r\nnosuch\r\nCLIENT nosuch\r\nGET " + strings.Repeat("k", 20_000) + "\r\n")
		for range 6 {
			require.Equal(t, byte('-'), c.Reply()[0])
		}
		require.Contains(t, other.Do("SW.ALLOW", "k", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"), "*5\r\n:0\r\n")
		c.Command("SW.ALLOW", "k", "1", "60", "1", "FIXED", "ANCHOR", "FIRST", "BLOCK", "0")
		w.Settle()
		require.Equal(t, 1, f.Keyspace().Waiting())
		require.Equal(t, ":1\r\n", other.Do("CLIENT", "UNBLOCK", id, "ERROR"))
		require.Contains(t, c.Reply(), "-UNBLOCKED")
		c.Send("CONFIG SET maxmemory 1\r\n")
		c.Expect("+OK\r\n")
		require.Contains(t, c.Do("SET", "new", "v"), "-OOM")
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "maxmemory", "0"))
		require.Contains(t, c.Do("EVAL", "local function f(n) if n > 0 then return f(n - 1) end return redis.error_reply('MINE of a loop') end return f(50000)", "0"), "-MINE")
		c.Send("CLIENT REPLY OFF\r\nLPUSH s v\r\nCLIENT REPLY ON\r\n")
		c.Expect("+OK\r\n")
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "requirepass", "secret"))
		require.Contains(t, f.Dial().Do("GET", "s"), "-NOAUTH")
		require.Contains(t, f.Dial().Do("AUTH", "wrong"), "-WRONGPASS")
		require.Equal(t, "+OK\r\n", c.Do("AUTH", "secret"))
		f.Disk.Inject(func(_ int, call faultfs.Call) error {
			if call.Op == "write" {
				return syscall.ENOSPC
			}
			return nil
		})
		require.Contains(t, c.Do("SET", "s", "v2"), "-MISCONF")

		require.Equal(t, map[string]string{
			"ERR": "6", "WRONGTYPE": "2", "UNBLOCKED": "1", "OOM": "1", "MINE": "1", "NOAUTH": "1", "WRONGPASS": "1", "MISCONF": "1",
		}, errorstats(c))
		require.Equal(t, "14", c.Info("total_error_replies"))
		for field, want := range map[string]string{
			"cmdstat_lpush": "calls=2,*,rejected_calls=0,failed_calls=2", "cmdstat_get": "calls=0,*,rejected_calls=3,failed_calls=0",
			"cmdstat_sw.allow": "calls=2,*,rejected_calls=0,failed_calls=1", "cmdstat_eval": "calls=1,*,rejected_calls=0,failed_calls=1",
			"cmdstat_auth": "calls=3,*,rejected_calls=0,failed_calls=2",
		} {
			calls, rest, _ := strings.Cut(want, "*")
			require.Regexp(t, "^"+calls+".*"+rest+"$", c.Info(field), field)
		}
		f.Disk.Inject(nil)
	})
}

// TestCommandstatsShowTimeForEveryCommandThatRan: no command that has run shows 0 microseconds.
func TestCommandstatsShowTimeForEveryCommandThatRan(t *testing.T) {
	c := inproc.OpenTimed(t)
	c.Packet([]byte("PING\r\nSET s v\r\nGET s\r\nPING\r\nEVAL \"return redis.call('strlen',KEYS[1])\" 1 s\r\nMULTI\r\nINCR n\r\nEXEC\r\nCONFIG RESETSTAT\r\nPING\r\nTTL s\r\n"))
	for range 2 { // the second time includes INFO itself
		reply := c.Do("INFO", "commandstats")
		require.Contains(t, reply, "cmdstat_ttl:")
		for line := range strings.SplitSeq(reply, "\r\n") {
			require.NotContains(t, line, "usec=0,", line)
			require.NotContains(t, line, "usec_per_call=0.00,", line)
		}
	}
}

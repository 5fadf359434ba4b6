package elements_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestLargeReadsAreAnsweredWholeAndInOrder: collections that are read in the background are
// replied in order and whole, as inside a transaction. A reply that is too long is an error.
func TestLargeReadsAreAnsweredWholeAndInOrder(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		c := s.Dial()
		const n = 20_000
		var packet strings.Builder
		for i := range n {
			fmt.Fprintf(&packet, "HSET h %d v\r\nSADD s %d\r\nRPUSH l %d\r\nZADD z %d %d\r\n", i, i, i, i, i)
		}
		go c.Send(packet.String())
		for range 4 * n {
			require.Equal(t, byte(':'), c.Reply()[0])
		}
		for command, count := range map[string]int{
			"HGETALL h": 2 * n, "HKEYS h": n, "HVALS h": n, "SMEMBERS s": n, "LRANGE l 0 -1": n, "LRANGE l 5 -6": n - 10,
			"ZRANGE z 0 -1": n, "ZREVRANGE z 0 -1 WITHSCORES": 2 * n, "ZRANGEBYSCORE z (3 +inf LIMIT 2 10000": 10_000,
		} {
			c.Send("ECHO before\r\n" + command + "\r\nECHO behind\r\n")
			c.Expect(inproc.Bulk("before"))
			got := c.Reply()
			require.True(t, strings.HasPrefix(got, fmt.Sprintf("*%d\r\n", count)), command)
			require.Equal(t, count, strings.Count(got, "$"), command)
			c.Expect(inproc.Bulk("behind"))
			c.Send("MULTI\r\n" + command + "\r\nDEL none\r\nEXEC\r\n")
			c.Expect(inproc.OK, inproc.Queued, inproc.Queued, inproc.Array(got, ":0\r\n"))
		}
		scanned := func(n int) string { return fmt.Sprintf("*2\r\n$1\r\n0\r\n*%d\r\n", n) }
		inner := "*" + strings.Repeat("a", 100) + "b*" // comparing it with the names in slow takes long
		for i := range 300 {
			c.Send(fmt.Sprintf("SADD slow %s%d\r\nHSET slower %[1]s%[2]d v\r\n", strings.Repeat("a", 400), i))
			c.Expect(":1\r\n", ":1\r\n")
		}
		for command, count := range map[string]int{
			"HSCAN h 0": 2 * n, "SSCAN s 7 COUNT 5": n, "HSCAN h 0 MATCH 1999?": 20, "SSCAN s 0 MATCH 1999?": 10,
			"SSCAN slow 0 MATCH " + inner: 0, "HSCAN slower 0 MATCH " + inner: 0, "SSCAN s 0 MATCH x*": 0,
			"ZSCAN z 0": 2 * n, "ZSCAN z 0 MATCH 1999?": 20,
		} {
			c.Send("ECHO before\r\n" + command + "\r\nECHO behind\r\n")
			c.Expect(inproc.Bulk("before"))
			got := c.Reply()
			require.True(t, strings.HasPrefix(got, scanned(count)), command)
			require.Equal(t, count, strings.Count(got, "$")-1, command)
			c.Expect(inproc.Bulk("behind"))
		}
		c.Send("MULTI\r\nHSCAN h 0 MATCH 1999?\r\nSSCAN slow 0 MATCH " + inner + "\r\nHSCAN l 0\r\nEXEC\r\n")
		c.Expect(inproc.OK, inproc.Queued, inproc.Queued, inproc.Queued)
		require.Contains(t, c.Reply(), "-ERR the pattern takes too long to match\r\n-WRONGTYPE")
		for command, count := range map[string]int{"9000": 9000, "-9000": 9000, "100": 100, "-100": 100, "19000": 19000} {
			got := strings.Split(c.Do("SRANDMEMBER", "s", command), "\r\n")
			require.Len(t, got, 2*count+2, command)
			members := map[string]bool{}
			for i := 2; i < len(got); i += 2 {
				members[got[i]] = true
			}
			if command != "-100" { // 100 random members may or may not repeat one
				require.Equal(t, command[0] != '-', len(members) == count, command)
			}
		}
		for left := n; left > 0; left -= min(left, 3000) {
			require.True(t, strings.HasPrefix(c.Do("SPOP", "s", "3000"), fmt.Sprintf("*%d\r\n", min(left, 3000))))
		}
		require.Equal(t, ":0\r\n", c.Do("EXISTS", "s"))
		c.Do("SADD", "s", "a")
		for _, command := range []string{"LRANGE h 0 -1", "SMEMBERS l", "HGETALL s"} {
			require.Contains(t, c.Do(strings.Fields(command)...), "-WRONGTYPE")
		}
		c.Do("SET", "long", strings.Repeat("x", 5000))
		c.Do("EVAL", "local v = redis.call('GET', 'long') for i = 1, 14000 do redis.call('RPUSH', 'wide', v) redis.call('SADD', 'set', v .. i) end", "0")
		for _, command := range []string{"LRANGE wide 0 -1", "LRANGE wide -14000 -1", "SMEMBERS set", "SSCAN set 0", "SSCAN set 0 MATCH *"} {
			require.Contains(t, c.Do(strings.Fields(command)...), "-ERR", command)
			require.Equal(t, inproc.Pong, c.Do("PING"))
		}
	})
}

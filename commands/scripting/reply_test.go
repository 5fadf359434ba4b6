package scripting_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// fillFamilies fills a list, a hash and two sets with n values of at least size bytes, and as
// many strings. It returns the commands that read all of them.
func fillFamilies(t *testing.T, c *inproc.Client, n, size int) (reads [][]string) {
	mget, hmget := []string{"MGET"}, []string{"HMGET", "h"}
	for i := range n {
		value := fmt.Sprint(i, strings.Repeat("v", size))
		for _, command := range [][]string{
			{"SET", fmt.Sprint("s", i), value},
			{"RPUSH", "l", value},
			{"HSET", "h", fmt.Sprint(i), value},
			{"SADD", "set", value},
			{"ZADD", "z", "1", value},
		} {
			require.NotContains(t, c.Do(command...), "-", command[0])
		}
		mget, hmget = append(mget, fmt.Sprint("s", i)), append(hmget, fmt.Sprint(i))
	}
	return [][]string{
		mget, hmget,
		{"LRANGE", "l", "0", "-1"},
		{"HGETALL", "h"},
		{"HVALS", "h"},
		{"HSCAN", "h", "0", "COUNT", "10000"},
		{"SMEMBERS", "set"},
		{"SRANDMEMBER", "set", fmt.Sprint(-n)},
		{"ZRANGE", "z", "0", "-1"},
	}
}

// countInScript calls command in a script. The reply is the number of elements that the script
// got, and taken the number of bytes allocated meanwhile.
func countInScript(c *inproc.Client, command []string) (reply string, taken uint64) {
	taken = inproc.AllocatedBy(func() {
		reply = c.Do(append([]string{"EVAL", "return #redis.call(unpack(ARGV))", "0"}, command...)...)
	})
	return reply, taken
}

// TestRepliesToScriptsStopAtTheirBound: a reply that is too long for a script is abandoned as
// soon as it exceeds the bound, not when it is complete, and a pop then removes nothing from a
// list.
func TestRepliesToScriptsStopAtTheirBound(t *testing.T) {
	effort.Alone(t)
	for name, size := range map[string]int{"copied": 15_000, "lent": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				c := w.Start().Dial()
				n := 60 << 20 / size
				reads := fillFamilies(t, c, n, size)
				for _, command := range reads {
					reply, taken := countInScript(c, command)
					if name == "lent" {
						require.NotContains(t, reply, "-", command[0])
						require.Less(t, taken, uint64(8<<20), command[0])
						continue
					}
					require.Contains(t, reply, "-ERR the reply is too large for a script", command[0])
					// A buffer that grows to the bound leaves about five times the bound as
					// garbage. The full reply of 60 MB would leave as many times its own size.
					require.Less(t, taken, uint64(150<<20), command[0])
				}
				for _, command := range [][]string{{"LPOP", "l", fmt.Sprint(n)}, {"SPOP", "set", fmt.Sprint(n)}, {"ZPOPMIN", "z", fmt.Sprint(n)}} {
					reply, taken := countInScript(c, command)
					require.Contains(t, reply, "-ERR the reply is too large for a script", command[0])
					require.Less(t, taken, uint64(150<<20), command[0])
				}
				for _, command := range [][]string{{"LLEN", "l"}, {"HLEN", "h"}, {"SCARD", "set"}, {"ZCARD", "z"}} {
					require.Equal(t, fmt.Sprintf(":%d\r\n", n), c.Do(command...), command)
				}
			})
		})
	}
}

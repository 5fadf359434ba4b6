package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRepliesToScriptsStopAtTheirBound: a reply that a script may not be given is given
// up once it is longer than that, not when it is whole, and takes nothing from a list.
func TestRepliesToScriptsStopAtTheirBound(t *testing.T) {
	f := start(t, "goroutine")
	c := f.dial()
	const size, n = 1 << 20, 60
	for i := range n {
		value := fmt.Sprint(i, strings.Repeat("v", size))
		for _, command := range [][]string{
			{"SET", fmt.Sprint("s", i), value},
			{"RPUSH", "l", value},
			{"HSET", "h", fmt.Sprint(i), value},
			{"SADD", "set", value},
			{"ZADD", "z", "1", value},
		} {
			require.NotContains(t, c.do(command...), "-", command[0])
		}
	}
	keys, fields := []string{"MGET"}, []string{"HMGET", "h"}
	for i := range n {
		keys, fields = append(keys, fmt.Sprint("s", i)), append(fields, fmt.Sprint(i))
	}
	for _, command := range [][]string{
		keys, fields,
		{"LRANGE", "l", "0", "-1"},
		{"HGETALL", "h"},
		{"HVALS", "h"},
		{"HSCAN", "h", "0", "COUNT", "1000"},
		{"SMEMBERS", "set"},
		{"SRANDMEMBER", "set", "-100"},
		{"ZRANGE", "z", "0", "-1"},
		{"LPOP", "l", "60"},
		{"SPOP", "set", "60"},
		{"ZPOPMIN", "z", "60"},
	} {
		taken := allocatedBy(func() {
			reply := c.do(append([]string{"EVAL", "return #redis.call(unpack(ARGV))", "0"}, command...)...)
			require.Contains(t, reply, "-ERR the reply is too l", command[0])
		})
		// A buffer that grows to the bound leaves five times that behind; all of them
		// together would be as much for 60 MB.
		require.Less(t, taken, uint64(150<<20), command[0])
	}
	for _, command := range [][]string{{"LLEN", "l"}, {"HLEN", "h"}, {"SCARD", "set"}, {"ZCARD", "z"}} {
		require.Equal(t, fmt.Sprintf(":%d\r\n", n), c.do(command...), command)
	}
}

package commands_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/transport"
)

// TestLongCommandsLeaveTheLoop: of each command with tens of thousands of arguments the feed
// returns before the command is done, and its reply is that of short commands.
func TestLongCommandsLeaveTheLoop(t *testing.T) {
	const n = 20_000
	args := func(name string, each ...string) []string {
		out := strings.Fields(name)
		for i := range n {
			for _, e := range each {
				out = append(out, strings.ReplaceAll(e, "#", strconv.Itoa(i)))
			}
		}
		return out
	}
	multi := args("RL.MULTI "+strconv.Itoa(n/2), "r#")[:2+n/2]
	for range n / 2 {
		multi = append(multi, "SW", "9", "60")
	}
	b := inproc.Open(t)
	all := fmt.Sprintf(":%d\r\n", n)
	for _, c := range []struct {
		args []string
		want string // the beginning of the reply
	}{
		{args("MSET", "k#", "v#"), inproc.OK},
		{args("MSETNX", "k#", "v"), ":0\r\n"},
		{args("MGET", "k#"), "*20000\r\n$2\r\nv0\r\n$2\r\nv1\r\n"},
		{args("EXISTS", "k#"), all},
		{args("TOUCH", "k#"), all},
		{args("UNLINK", "k#"), all},
		{args("DEL", "k#"), ":0\r\n"},
		{args("HSET h", "f#", "v"), all},
		{args("HMGET h", "f#"), "*20000\r\n$1\r\nv\r\n"},
		{args("HDEL h", "f#"), all},
		{args("SADD s", "m#"), all},
		{args("SMISMEMBER s", "m#"), "*20000\r\n:1\r\n"},
		{args("SREM s", "m#"), all},
		{args("ZADD z", "1", "m#"), all},
		{args("ZMSCORE z", "m#"), "*20000\r\n$1\r\n1\r\n"},
		{args("ZREM z", "m#"), all},
		{args("RPUSH l", "e#"), all},
		{args("LPUSH l", "e#"), fmt.Sprintf(":%d\r\n", 2*n)},
		{[]string{"LREM", "l", "0", "e7"}, ":2\r\n"},
		{[]string{"LTRIM", "l", "0", "9"}, inproc.OK},
		{[]string{"LLEN", "l"}, ":10\r\n"},
		{[]string{"SETRANGE", "zeros", "1000000", "x"}, ":1000001\r\n"},
		{multi, "*5\r\n:0\r\n:9\r\n:8\r\n"},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			packet := inproc.Encode(nil, c.args...)
			turn := b.Turn(packet, nil)
			if c.args[0] != "LLEN" {
				require.Equal(t, transport.Park, turn.Next, "the loop is free meanwhile")
				require.Empty(t, turn.Out)
			}
			require.Equal(t, len(packet), turn.Consumed)
			reply := turn.Out
			if turn.Next == transport.Park {
				b.Woken()
				reply = b.Packet(nil)
			}
			require.True(t, strings.HasPrefix(string(reply), c.want), "%.60q", reply)
		})
	}
}

// TestFewCostlyArgumentsLeaveTheLoop: a command with expensive arguments leaves the loop even if
// it has few of them.
func TestFewCostlyArgumentsLeaveTheLoop(t *testing.T) {
	b := inproc.Open(t)
	for call, word := range map[string]string{
		"CONFIG GET": "maxm*ory", "COMMAND INFO": "get", "COMMAND DOCS": "get", "INFO": "server", "RL.MULTI 2000": "k",
	} {
		many := strings.Fields(call + strings.Repeat(" "+word, 2000))
		require.Equal(t, transport.Park, b.Turn(inproc.Encode(nil, many...), nil).Next, call)
		reply := b.Rest()
		require.NotContains(t, reply[:10], "unknown", call)
		few := inproc.Encode(nil, many[:12]...)
		require.Equal(t, transport.Read, b.Turn(few, nil).Next, call)
	}
	config := strings.Fields("CONFIG GET" + strings.Repeat(" maxm*ory", 200))
	require.Equal(t, transport.Park, b.Turn(inproc.Encode(nil, config...), nil).Next)
	require.Contains(t, b.Rest(), "maxmemory")
}

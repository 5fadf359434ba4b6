package server_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

// TestLongCommandsLeaveTheLoop feeds each command with tens of thousands of arguments:
// the feed returns before it is done, and its reply is that of a short one.
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
	b := newWaitingBench(t)
	all := fmt.Sprintf(":%d\r\n", n)
	for _, c := range []struct {
		args []string
		want string // how the reply begins
	}{
		{args("MSET", "k#", "v#"), "+OK\r\n"},
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
		{[]string{"LTRIM", "l", "0", "9"}, "+OK\r\n"},
		{[]string{"LLEN", "l"}, ":10\r\n"},
		{[]string{"SETRANGE", "zeros", "1000000", "x"}, ":1000001\r\n"},
		{multi, "*5\r\n:0\r\n:9\r\n:8\r\n"},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			packet := frame(c.args...)
			turn := b.session.Feed(b.worker, packet, nil)
			if c.args[0] != "LLEN" {
				require.Equal(t, transport.Park, turn.Next, "the loop is free meanwhile")
				require.Empty(t, turn.Out)
			}
			require.Equal(t, len(packet), turn.Consumed)
			reply := turn.Out
			if turn.Next == transport.Park {
				<-b.peer.wake
				reply = b.do(nil)
			}
			require.True(t, strings.HasPrefix(string(reply), c.want), "%.60q", reply)
		})
	}
}

// TestFewCostlyArgumentsLeaveTheLoop: where each word takes long, few of them are many.
func TestFewCostlyArgumentsLeaveTheLoop(t *testing.T) {
	b := newWaitingBench(t)
	for call, word := range map[string]string{
		"CONFIG GET": "maxm*ory", "COMMAND INFO": "get", "COMMAND DOCS": "get", "INFO": "server", "RL.MULTI 2000": "k",
	} {
		many := strings.Fields(call + strings.Repeat(" "+word, 2000))
		require.Equal(t, transport.Park, b.session.Feed(b.worker, frame(many...), nil).Next, call)
		<-b.peer.wake
		reply := string(b.do(nil))
		require.NotContains(t, reply[:10], "unknown", call)
		few := frame(many[:12]...)
		require.Equal(t, transport.Read, b.session.Feed(b.worker, few, nil).Next, call)
	}
	config := strings.Fields("CONFIG GET" + strings.Repeat(" maxm*ory", 200))
	require.Equal(t, transport.Park, b.session.Feed(b.worker, frame(config...), nil).Next)
	<-b.peer.wake
	require.Contains(t, string(b.do(nil)), "maxmemory")
}

// TestLongMSETIsSeenWholeOrNotAtAll has one client set 30,000 keys to one value after
// another, while another reads both ends of them at one instant.
func TestLongMSETIsSeenWholeOrNotAtAll(t *testing.T) {
	writer := newWaitingBench(t)
	set := func(value string) []byte {
		args := []string{"MSET"}
		for i := range 30_000 {
			args = append(args, "k"+strconv.Itoa(i), value)
		}
		return frame(args...)
	}
	writer.do(set("0"))
	over := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		defer close(over)
		for i := range 5 {
			writer.do(set(strconv.Itoa(i)))
		}
	})
	reader := writer.waiting()
	for {
		reply := strings.Split(string(reader.do(frame("MGET", "k0", "k29999"))), "\r\n")
		require.Equal(t, reply[2], reply[4], "half of an MSET was seen")
		select {
		case <-over:
			done.Wait()
			return
		default:
		}
	}
}

// TestLongTransactionLeavesTheLoop runs a queue of 20,000 commands, with what it watches.
func TestLongTransactionLeavesTheLoop(t *testing.T) {
	b := newWaitingBench(t)
	b.do(frame("WATCH", "k1"))
	b.do(frame("MULTI"))
	for i := range 20_000 {
		b.feed(frame("SET", "k"+strconv.Itoa(i), "v"))
	}
	require.Equal(t, transport.Park, b.session.Feed(b.worker, frame("EXEC"), nil).Next)
	require.Equal(t, "+PONG\r\n", string(b.another().feed(frame("PING"))), "the loop is free meanwhile")
	<-b.peer.wake
	reply := string(b.do(nil))
	require.Equal(t, "*20000\r\n"+strings.Repeat("+OK\r\n", 20_000), reply)
	require.Equal(t, ":20000\r\n", string(b.do(frame("DBSIZE"))))
	require.Equal(t, "-ERR EXEC without MULTI\r\n", string(b.do(frame("EXEC"))), "it is over")
}

// TestTransactionOverLargeCollectionsLeavesTheLoop queues few commands that go through
// much.
func TestTransactionOverLargeCollectionsLeavesTheLoop(t *testing.T) {
	b := newWaitingBench(t)
	push := []string{"RPUSH", "l"}
	for i := range 20_000 {
		push = append(push, strconv.Itoa(i))
	}
	b.do(frame(push...))
	b.do(frame("MULTI"))
	b.do(frame("LREM", "l", "0", "7"))
	turn := b.session.Feed(b.worker, frame("EXEC"), nil)
	require.Equal(t, transport.Park, turn.Next)
	<-b.peer.wake
	require.Equal(t, "*1\r\n:1\r\n", string(b.do(nil)))
}

// TestLongSubscriptionsGoOnInSlices feeds SUBSCRIBE, UNSUBSCRIBE and WATCH with many
// names: others have their turn in between, and nothing is lost.
func TestLongSubscriptionsGoOnInSlices(t *testing.T) {
	const n = 5000
	names := func(command string) []byte {
		args := []string{command}
		for i := range n {
			args = append(args, "c"+strconv.Itoa(i))
		}
		return frame(args...)
	}
	b := newWaitingBench(t)
	for command, last := range map[string]string{"SUBSCRIBE": fmt.Sprintf(":%d\r\n", n), "WATCH": "+OK\r\n"} {
		b := b.waiting()
		packet := append(names(command), frame("PING")...)
		turns, out := 0, []byte(nil)
		for next := transport.Again; next == transport.Again; turns++ {
			turn := b.session.Feed(b.worker, packet, out)
			packet, out, next = packet[turn.Consumed:], turn.Out, turn.Next
		}
		require.Greater(t, turns, n/2000, command)
		reply, pong := string(out), "+PONG\r\n"
		if command == "SUBSCRIBE" {
			require.Equal(t, n, strings.Count(reply, "subscribe\r\n"))
			pong = "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
		}
		require.True(t, strings.HasSuffix(reply, last+pong), "%s: %.80q", command, reply[max(0, len(reply)-80):])
	}
	listener := b.waiting()
	listener.do(names("SUBSCRIBE"))
	reply := string(listener.do(frame("UNSUBSCRIBE")))
	require.Equal(t, n, strings.Count(reply, "unsubscribe\r\n"))
	require.True(t, strings.HasSuffix(reply, ":0\r\n"))
}

// TestResetOfManySubscriptionsGoesOnInSlices: RESET of a client with tens of thousands of
// subscriptions ends them in slices: others have their turn in between, and nothing is
// left of them behind its reply.
func TestResetOfManySubscriptionsGoesOnInSlices(t *testing.T) {
	const n = 50_000
	b := newWaitingBench(t)
	listener := b.waiting()
	for from := 0; from < n; from += 5000 {
		args := []string{"SUBSCRIBE"}
		for i := range 5000 {
			args = append(args, "c"+strconv.Itoa(from+i))
		}
		listener.do(frame(args...))
	}
	listener.do(frame("PSUBSCRIBE", "p*"))
	listener.do(frame("SSUBSCRIBE", "s"))
	require.Equal(t, ":1\r\n", string(b.do(frame("PUBLISH", "c49999", "m"))))
	listener.do(nil)

	packet := append(frame("RESET"), frame("GET", "k")...)
	turns, out := 0, []byte(nil)
	for next := transport.Again; next == transport.Again; turns++ {
		turn := listener.session.Feed(listener.worker, packet, out)
		packet, out, next = packet[turn.Consumed:], turn.Out, turn.Next
		require.NotEmpty(t, b.do(frame("PING")), "others have their turn")
	}
	require.Equal(t, "+RESET\r\n$-1\r\n", string(out))
	require.Greater(t, turns, n/2000)
	for _, publish := range [][]byte{frame("PUBLISH", "c7", "m"), frame("PUBLISH", "p7", "m"), frame("SPUBLISH", "s", "m")} {
		require.Equal(t, ":0\r\n", string(b.do(publish)))
	}
	require.Zero(t, b.engine.ClientMemory())
}

// TestPublishToManyLeavesTheLoop publishes to a crowd: each gets the message, and the
// loop of the publisher does not wait for all of them.
func TestPublishToManyLeavesTheLoop(t *testing.T) {
	b := newWaitingBench(t)
	const crowd = 3000
	for range crowd {
		b.waiting().do(frame("SUBSCRIBE", "news"))
	}
	require.Equal(t, transport.Park, b.session.Feed(b.worker, frame("PUBLISH", "news", "m"), nil).Next)
	<-b.peer.wake
	require.Equal(t, fmt.Sprintf(":%d\r\n", crowd), string(b.do(nil)))
}

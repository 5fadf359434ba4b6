package pubsub_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/transport"
)

// TestLongSubscriptionsGoOnInSlices: SUBSCRIBE, UNSUBSCRIBE and WATCH with many names are divided
// into slices. Other clients are served in between, and nothing is lost.
func TestLongSubscriptionsGoOnInSlices(t *testing.T) {
	const n = 5000
	names := func(command string) []byte {
		args := []string{command}
		for i := range n {
			args = append(args, "c"+strconv.Itoa(i))
		}
		return inproc.Encode(nil, args...)
	}
	b := inproc.Open(t)
	for command, last := range map[string]string{"SUBSCRIBE": fmt.Sprintf(":%d\r\n", n), "WATCH": inproc.OK} {
		b := b.Another()
		packet := append(names(command), inproc.Encode(nil, "PING")...)
		turns, out := 0, []byte(nil)
		for next := transport.Again; next == transport.Again; turns++ {
			turn := b.Turn(packet, out)
			packet, out, next = packet[turn.Consumed:], turn.Out, turn.Next
		}
		require.Greater(t, turns, n/2000, command)
		reply, pong := string(out), inproc.Pong
		if command == "SUBSCRIBE" {
			require.Equal(t, n, strings.Count(reply, "subscribe\r\n"))
			pong = "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
		}
		require.True(t, strings.HasSuffix(reply, last+pong), "%s: %.80q", command, reply[max(0, len(reply)-80):])
	}
	listener := b.Another()
	listener.Packet(names("SUBSCRIBE"))
	reply := listener.Do("UNSUBSCRIBE")
	require.Equal(t, n, strings.Count(reply, "unsubscribe\r\n"))
	require.True(t, strings.HasSuffix(reply, ":0\r\n"))
}

// TestResetOfManySubscriptionsGoesOnInSlices: RESET ends tens of thousands of subscriptions in
// slices. Other clients are served in between, and no subscription is left after its reply.
func TestResetOfManySubscriptionsGoesOnInSlices(t *testing.T) {
	const n = 50_000
	b := inproc.Open(t)
	listener := b.Another()
	for from := 0; from < n; from += 5000 {
		args := []string{"SUBSCRIBE"}
		for i := range 5000 {
			args = append(args, "c"+strconv.Itoa(from+i))
		}
		listener.Do(args...)
	}
	listener.Do("PSUBSCRIBE", "p*")
	listener.Do("SSUBSCRIBE", "s")
	require.Equal(t, ":1\r\n", b.Do("PUBLISH", "c49999", "m"))
	listener.Packet(nil)

	packet := append(inproc.Encode(nil, "RESET"), inproc.Encode(nil, "GET", "k")...)
	turns, out := 0, []byte(nil)
	for next := transport.Again; next == transport.Again; turns++ {
		turn := listener.Turn(packet, out)
		packet, out, next = packet[turn.Consumed:], turn.Out, turn.Next
		require.NotEmpty(t, b.Do("PING"), "others have their turn")
	}
	require.Equal(t, "+RESET\r\n$-1\r\n", string(out))
	require.Greater(t, turns, n/2000)
	for _, publish := range [][]byte{inproc.Encode(nil, "PUBLISH", "c7", "m"), inproc.Encode(nil, "PUBLISH", "p7", "m"), inproc.Encode(nil, "SPUBLISH", "s", "m")} {
		require.Equal(t, ":0\r\n", string(b.Packet(publish)))
	}
	require.Zero(t, b.Server().Engine().ClientMemory())
}

// TestPublishToManyLeavesTheLoop: of a message to many clients each gets a copy, and the loop of
// the publisher does not wait for all of them.
func TestPublishToManyLeavesTheLoop(t *testing.T) {
	b := inproc.Open(t)
	const crowd = 3000
	for range crowd {
		b.Another().Do("SUBSCRIBE", "news")
	}
	require.Equal(t, transport.Park, b.Turn(inproc.Encode(nil, "PUBLISH", "news", "m"), nil).Next)
	require.Equal(t, fmt.Sprintf(":%d\r\n", crowd), b.Rest())
}

package pubsub_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// told encodes the message that a client of a protocol version gets.
func told(proto, channel, body string) string {
	m := inproc.Array(inproc.Bulk("message"), inproc.Bulk(channel), inproc.Bulk(body))
	if proto == "3" {
		return ">" + m[1:]
	}
	return m
}

// TestSubscriptionsAreBounded: a command with too many names, or with a name or pattern that is
// too long, is refused as a whole.
func TestSubscriptionsAreBounded(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		c.Do("HELLO", "3")
		many := []string{"PSUBSCRIBE"}
		for i := range 4097 {
			many = append(many, fmt.Sprint(i))
		}
		require.Equal(t, "-ERR too many subscriptions\r\n", c.Do(many...))
		require.Equal(t, ":0\r\n", c.Do("PUBSUB", "NUMPAT"))
		require.Equal(t, "-ERR pattern is too long, at most 1024 bytes\r\n", c.Do("PSUBSCRIBE", "a", strings.Repeat("a", 1025)))
		require.Equal(t, "-ERR channel name is too long, at most 4096 bytes\r\n", c.Do("SUBSCRIBE", "a", strings.Repeat("a", 4097)))
		require.Equal(t, "-ERR channel name is too long, at most 4096 bytes\r\n", c.Do("PUBLISH", strings.Repeat("a", 4097), "m"))
		refused := false
		for i := 0; i < 4000 && !refused; i++ { // 32 MB of names
			refused = c.Do("SUBSCRIBE", fmt.Sprint(i)+strings.Repeat("a", 4000)) == "-ERR too many subscriptions\r\n"
		}
		require.True(t, refused)
		require.Positive(t, f.Engine().ClientMemory())
		require.NoError(t, c.Close())
		w.Settle()
		require.Zero(t, f.Engine().ClientMemory())
	})
}

// TestHostilePatterns: matching that takes long runs in the background, with the same result.
func TestHostilePatterns(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		listener := f.Dial()
		hostile := []string{"PSUBSCRIBE", "a*"}
		for i := range 2 {
			hostile = append(hostile, "*"+strings.Repeat("a", 500)+fmt.Sprint(i)+"*a")
		}
		listener.Command(hostile...)
		for range len(hostile) - 1 {
			listener.Reply()
		}
		require.Equal(t, "-ERR too many subscriptions\r\n", c.Do("PSUBSCRIBE", hostile[2], hostile[3], "*"+strings.Repeat("?", 100)+"*"))
		channel := strings.Repeat("a", 4000)
		for range 3 {
			c.Send("PUBLISH " + channel + " m\r\nPING\r\n")
			c.Expect(":1\r\n", "+PONG\r\n")
			require.Equal(t, inproc.Array(inproc.Bulk("pmessage"), inproc.Bulk("a*"), inproc.Bulk(channel), inproc.Bulk("m")), listener.Reply())
		}
		c.Send("MULTI\r\nPUBLISH " + channel + " m\r\nEXEC\r\n")
		c.Expect("+OK\r\n", "+QUEUED\r\n", inproc.Array(":1\r\n"))
	})
}

// TestSubscribersThatComeAndGoLeaveNothing: clients that concurrently subscribe, unsubscribe,
// publish, reset and disconnect leave nothing behind, and no client gets a message of a channel
// that it has left.
func TestSubscribersThatComeAndGoLeaveNothing(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		var all sync.WaitGroup
		for n := range 8 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(n), 7))
				for range 20 {
					wander(t, f, r)
				}
			})
		}
		all.Wait()
		c := f.Dial()
		w.Settle()
		require.Equal(t, "1", c.Info("connected_clients"))
		require.Equal(t, "*0\r\n", c.Do("PUBSUB", "CHANNELS"))
		require.Equal(t, ":0\r\n", c.Do("PUBSUB", "NUMPAT"))
		require.Equal(t, "0", c.Info("pubsub_clients"))
		require.Zero(t, f.Engine().ClientMemory())
	})
}

// wander is one client that joins and leaves a few channels and publishes to them. It must get no
// message after it has left all of them.
func wander(t *testing.T, f *inproc.Node, r *rand.Rand) {
	c := f.Dial()
	c.Do("HELLO", "3")
	channel := func() string { return string(rune('a' + r.IntN(4))) }
	var packet strings.Builder
	for range 30 {
		switch r.IntN(5) {
		case 0:
			packet.WriteString("SUBSCRIBE " + channel() + " " + channel() + "\r\n")
		case 1:
			packet.WriteString("PSUBSCRIBE [" + channel() + channel() + "]\r\n")
		case 2:
			packet.WriteString("UNSUBSCRIBE " + channel() + "\r\n")
		default:
			packet.WriteString("PUBLISH " + channel() + " " + strings.Repeat("m", r.IntN(6000)) + "\r\n")
		}
	}
	end := []string{"UNSUBSCRIBE\r\nPUNSUBSCRIBE\r\nECHO left\r\n", "RESET\r\nECHO left\r\n", "QUIT\r\n"}[r.IntN(3)]
	c.Send(packet.String() + end)
	if end == "QUIT\r\n" {
		require.NoError(t, c.Close())
		return
	}
	for left := inproc.Bulk("left"); c.Reply() != left; {
		continue
	}
	require.Equal(t, "+PONG\r\n", c.Do("PING"))
	require.NoError(t, c.Close())
}

// TestPublishingAllocatesNothing: once the output buffers have grown, a message causes no
// allocation for its subscribers, and its memory is freed after they have read it.
func TestPublishingAllocatesNothing(t *testing.T) {
	const subscribers = 100
	type listener struct {
		*inproc.Fed
		out []byte
	}
	publisher := inproc.Open(t)
	var all []*listener
	for range subscribers {
		l := &listener{Fed: publisher.Another()}
		l.out = l.Turn([]byte("SUBSCRIBE news\r\n"), nil).Out
		require.Contains(t, string(l.out), "subscribe")
		all = append(all, l)
	}
	packet, out := []byte(strings.Repeat("PUBLISH news 0123456789\r\n", 3)), []byte(nil)
	allocs := testing.AllocsPerRun(200, func() {
		out = publisher.Turn(packet, out[:0]).Out
		for _, l := range all {
			l.out = l.Turn(nil, l.out[:0]).Out
		}
	})
	require.Equal(t, strings.Repeat(":100\r\n", 3), string(out))
	require.Equal(t, strings.Repeat(told("2", "news", "0123456789"), 3), string(all[99].out))
	require.Zero(t, allocs)
	engine := publisher.Server().Engine()
	require.Positive(t, engine.ClientMemory())
	for _, l := range all {
		l.Leave()
	}
	require.Zero(t, engine.ClientMemory())
}

package transport_test

import (
	"bufio"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// listen returns a client with a protocol version that has subscribed to the channels.
func listen(t *testing.T, f *inproc.Served, proto string, channels ...string) *inproc.Client {
	c := f.Dial()
	c.Do("HELLO", proto)
	c.Command(append([]string{"SUBSCRIBE"}, channels...)...)
	for range channels {
		require.Contains(t, c.Reply(), "subscribe")
	}
	return c
}

// told encodes the message that a client with a protocol version gets.
func told(proto, channel, body string) string {
	m := inproc.Array(inproc.Bulk("message"), inproc.Bulk(channel), inproc.Bulk(body))
	if proto == "3" {
		return ">" + m[1:]
	}
	return m
}

// TestEverySubscriberHearsTheSame: several clients publish to one channel at once. All subscribers
// receive all messages in the same order, which keeps the order of each publisher.
func TestEverySubscriberHearsTheSame(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		const publishers, subscribers, messages = 3, 12, 300
		f := inproc.Serve(t, kind)
		var heard [subscribers][]string
		var all sync.WaitGroup
		for i := range subscribers {
			proto := []string{"2", "3"}[i%2]
			c := listen(t, f, proto, "news")
			all.Go(func() {
				for range publishers * messages {
					text, err := inproc.ReadReply(c.R)
					if err != nil {
						return
					}
					heard[i] = append(heard[i], strings.TrimLeft(text, "*>"))
				}
			})
		}
		for p := range publishers {
			all.Go(func() {
				c := f.Dial()
				var packet strings.Builder
				for i := range messages {
					fmt.Fprintf(&packet, "PUBLISH news %d:%06d:%s\r\n", p, i, strings.Repeat("x", i%7*1000))
				}
				c.Send(packet.String())
				for range messages {
					require.Equal(t, ":12\r\n", c.Reply())
				}
			})
		}
		all.Wait()
		last := make(map[byte]string)
		for _, m := range heard[0] {
			body := m[strings.Index(m, "news\r\n")+6:]
			body = body[strings.Index(body, "\n")+1:]
			require.Greater(t, body[:8], last[body[0]])
			last[body[0]] = body[:8]
		}
		require.Len(t, last, publishers)
		for i := range heard {
			require.Equal(t, heard[0], heard[i], "subscriber %d", i)
			require.Len(t, heard[i], publishers*messages)
		}
	})
}

// TestSlowSubscriberIsCutOff: a subscriber that does not read is disconnected at the hard limit.
// Other subscribers receive everything meanwhile, and its memory is released.
func TestSlowSubscriberIsCutOff(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind, "--client-output-buffer-limit", "pubsub 1mb 0 0", "--write-timeout", "600")
		slow, good := listen(t, f, "2", "news"), listen(t, f, "3", "news")
		c := f.Dial()
		body := strings.Repeat("x", 100_000)
		cut := false
		for i := 0; i < 1000 && !cut; i++ {
			cut = c.Do("PUBLISH", "news", body) == ":1\r\n"
			require.Equal(t, told("3", "news", body), good.Reply())
		}
		require.True(t, cut, "100 MB for a client that reads nothing")
		require.Equal(t, "1", c.Info("client_output_buffer_limit_disconnections"))
		_, err := bufio.NewReader(slow).ReadString('\x00') // no message contains it, so this reads to the end
		require.Error(t, err)
		require.NotContains(t, err.Error(), "timeout")
		require.Contains(t, f.Log.String(), "too many unread replies")
		require.NoError(t, good.Close())
		inproc.Await(t, "all is forgotten", func() bool { return f.Engine().ClientMemory() == 0 && c.Info("pubsub_channels") == "0" })
	})
}

// TestSoftOutputLimit: a subscriber may exceed the soft limit only for the configured time, even if
// nothing more is published.
func TestSoftOutputLimit(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind, "--client-output-buffer-limit", "pubsub 0 1mb 10", "--write-timeout", "600")
		listen(t, f, "3", "news")
		c := f.Dial()
		body := strings.Repeat("x", 500_000)
		for range 100 {
			require.Equal(t, ":1\r\n", c.Do("PUBLISH", "news", body))
		}
		f.Clock.Advance(11 * time.Second)
		inproc.Await(t, "it is gone", func() bool { return c.Do("PUBSUB", "NUMSUB", "news") == inproc.Array(inproc.Bulk("news"), ":0\r\n") })
		inproc.Await(t, "its memory is free", func() bool { return f.Engine().ClientMemory() == 0 })
	})
}

// TestSubscribersAreKilledMeanwhile: clients that are killed, disconnected or leave while messages
// are delivered do not affect the messages of other clients, and leave no memory behind.
func TestSubscribersAreKilledMeanwhile(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind, "--client-output-buffer-limit", "pubsub 300kb 0 0")
		good := listen(t, f, "3", "news")
		c := f.Dial()
		const messages = 600
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for i := range 25 {
					victim := f.Dial()
					id := victim.ID()
					victim.Do("SUBSCRIBE", "news")
					switch i % 3 {
					case 0:
						killer := f.Dial()
						killer.Do("CLIENT", "KILL", "ID", id) // it may be disconnected by now
						require.NoError(t, killer.Close())
					case 1: // it reads nothing more
					}
					_ = victim.Close() // it may be closed already
				}
			})
		}
		body := strings.Repeat("m", 9000)
		for range messages {
			require.Equal(t, byte(':'), c.Do("PUBLISH", "news", body)[0])
			require.Equal(t, told("3", "news", body), good.Reply())
		}
		all.Wait()
		require.NoError(t, good.Close())
		inproc.Await(t, "all is forgotten", func() bool {
			return f.Engine().ClientMemory() == 0 && c.Do("PUBSUB", "CHANNELS") == "*0\r\n"
		})
	})
}

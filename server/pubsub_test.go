package server_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/transport"
)

// listen returns a client of a protocol that has subscribed to the channels.
func (f *fixture) listen(proto string, channels ...string) *client {
	c := f.dial()
	c.do("HELLO", proto)
	c.command(append([]string{"SUBSCRIBE"}, channels...)...)
	for range channels {
		require.Contains(f.t, c.reply(), "subscribe")
	}
	return c
}

// told encodes the message that a client of a protocol gets.
func told(proto, channel, body string) string {
	m := array(bulk("message"), bulk(channel), bulk(body))
	if proto == "3" {
		return ">" + m[1:]
	}
	return m
}

// TestEverySubscriberHearsTheSame: several clients publish to one channel at once. All
// subscribers hear all of it, in one and the same order, in which the messages of each
// publisher follow one another.
func TestEverySubscriberHearsTheSame(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		const publishers, subscribers, messages = 3, 12, 300
		before := goleak.IgnoreCurrent()
		f := start(t, kind)
		var heard [subscribers][]string
		var all sync.WaitGroup
		for i := range subscribers {
			proto := []string{"2", "3"}[i%2]
			c := f.listen(proto, "news")
			all.Go(func() {
				for range publishers * messages {
					text, err := readReply(c.r)
					if err != nil {
						return
					}
					heard[i] = append(heard[i], strings.TrimLeft(text, "*>"))
				}
			})
		}
		for p := range publishers {
			all.Go(func() {
				c := f.dial()
				var packet strings.Builder
				for i := range messages {
					fmt.Fprintf(&packet, "PUBLISH news %d:%06d:%s\r\n", p, i, strings.Repeat("x", i%7*1000))
				}
				c.send(packet.String())
				for range messages {
					require.Equal(t, ":12\r\n", c.reply())
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
		f.end()
		leftBehind(t, before)
	})
}

// TestSlowSubscriberIsCutOff: a subscriber that does not read is cut off beyond the hard
// limit, the others hear everything meanwhile, and its memory is free again.
func TestSlowSubscriberIsCutOff(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--client-output-buffer-limit", "pubsub 1mb 0 0", "--write-timeout", "600")
		slow, good := f.listen("2", "news"), f.listen("3", "news")
		c := f.dial()
		body := strings.Repeat("x", 100_000)
		cut := false
		for i := 0; i < 1000 && !cut; i++ {
			cut = c.do("PUBLISH", "news", body) == ":1\r\n"
			require.Equal(t, told("3", "news", body), good.reply())
		}
		require.True(t, cut, "100 MB for a client that reads nothing")
		require.Equal(t, "1", c.info("client_output_buffer_limit_disconnections"))
		_, err := bufio.NewReader(slow).ReadString('\x00') // nothing has one: this reads to the end
		require.Error(t, err)
		require.NotContains(t, err.Error(), "timeout")
		require.Contains(t, f.log.String(), "too many unread replies")
		require.NoError(t, good.Close())
		eventually(t, "all is forgotten", func() bool { return f.Engine().ClientMemory() == 0 && c.info("pubsub_channels") == "0" })
	})
}

// TestSoftOutputLimit: a subscriber may be beyond the soft limit for its time only, even
// if nothing more is published.
func TestSoftOutputLimit(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--client-output-buffer-limit", "pubsub 0 1mb 10", "--write-timeout", "600")
		f.listen("3", "news")
		c := f.dial()
		body := strings.Repeat("x", 500_000)
		for range 100 {
			require.Equal(t, ":1\r\n", c.do("PUBLISH", "news", body))
		}
		f.clock.Advance(11 * time.Second)
		eventually(t, "it is gone", func() bool { return c.do("PUBSUB", "NUMSUB", "news") == array(bulk("news"), ":0\r\n") })
		eventually(t, "its memory is free", func() bool { return f.Engine().ClientMemory() == 0 })
	})
}

// TestSubscriptionsAreBounded: too many, and names and patterns too long, are refused as
// a whole.
func TestSubscriptionsAreBounded(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		c.do("HELLO", "3")
		many := []string{"PSUBSCRIBE"}
		for i := range 4097 {
			many = append(many, fmt.Sprint(i))
		}
		require.Equal(t, "-ERR too many subscriptions\r\n", c.do(many...))
		require.Equal(t, ":0\r\n", c.do("PUBSUB", "NUMPAT"))
		require.Equal(t, "-ERR pattern is too long, at most 1024 bytes\r\n", c.do("PSUBSCRIBE", "a", strings.Repeat("a", 1025)))
		require.Equal(t, "-ERR channel name is too long, at most 4096 bytes\r\n", c.do("SUBSCRIBE", "a", strings.Repeat("a", 4097)))
		require.Equal(t, "-ERR channel name is too long, at most 4096 bytes\r\n", c.do("PUBLISH", strings.Repeat("a", 4097), "m"))
		refused := false
		for i := 0; i < 4000 && !refused; i++ { // 32 MB of names
			refused = c.do("SUBSCRIBE", fmt.Sprint(i)+strings.Repeat("a", 4000)) == "-ERR too many subscriptions\r\n"
		}
		require.True(t, refused)
		require.Positive(t, f.Engine().ClientMemory())
		require.NoError(t, c.Close())
		eventually(t, "all is forgotten", func() bool { return f.Engine().ClientMemory() == 0 })
	})
}

// TestHostilePatterns: matching that takes long runs in the background, and the answer is
// the same.
func TestHostilePatterns(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		listener := f.dial()
		hostile := []string{"PSUBSCRIBE", "a*"}
		for i := range 2 {
			hostile = append(hostile, "*"+strings.Repeat("a", 500)+fmt.Sprint(i)+"*a")
		}
		listener.command(hostile...)
		for range len(hostile) - 1 {
			listener.reply()
		}
		require.Equal(t, "-ERR too many subscriptions\r\n", c.do("PSUBSCRIBE", hostile[2], hostile[3], "*"+strings.Repeat("?", 100)+"*"))
		channel := strings.Repeat("a", 4000)
		for range 3 {
			c.send("PUBLISH " + channel + " m\r\nPING\r\n")
			c.expect(":1\r\n", "+PONG\r\n")
			require.Equal(t, array(bulk("pmessage"), bulk("a*"), bulk(channel), bulk("m")), listener.reply())
		}
		c.send("MULTI\r\nPUBLISH " + channel + " m\r\nEXEC\r\n")
		c.expect("+OK\r\n", "+QUEUED\r\n", array(":1\r\n"))
	})
}

// TestSubscribersThatComeAndGoLeaveNothing: clients that subscribe, leave, publish, reset
// and hang up all at once leave nothing behind, and nobody hears what he has left.
func TestSubscribersThatComeAndGoLeaveNothing(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		var all sync.WaitGroup
		for n := range 8 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(n), 7))
				for range 20 {
					f.wander(r)
				}
			})
		}
		all.Wait()
		c := f.dial()
		// What those who have hung up had sent may be read only now.
		eventually(t, "all have left", func() bool { return c.info("connected_clients") == "1" })
		// The last one is no client any more a moment before its subscriptions are ended.
		eventually(t, "no channel is left", func() bool { return c.do("PUBSUB", "CHANNELS") == "*0\r\n" })
		eventually(t, "no pattern is left", func() bool { return c.do("PUBSUB", "NUMPAT") == ":0\r\n" })
		eventually(t, "no subscriber is left", func() bool { return c.info("pubsub_clients") == "0" })
		eventually(t, "no memory is left", func() bool { return f.Engine().ClientMemory() == 0 })
	})
}

// wander lives the life of one client: it joins and leaves a few channels and publishes
// to them. After it has left all it must hear nothing.
func (f *fixture) wander(r *rand.Rand) {
	c := f.dial()
	c.do("HELLO", "3")
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
	c.send(packet.String() + end)
	if end == "QUIT\r\n" {
		require.NoError(f.t, c.Close())
		return
	}
	for left := bulk("left"); c.reply() != left; {
		continue
	}
	require.Equal(f.t, "+PONG\r\n", c.do("PING"))
	require.NoError(f.t, c.Close())
}

// TestPublishingAllocatesNothing: a message costs its subscribers no allocation once
// their outboxes have grown.
func TestPublishingAllocatesNothing(t *testing.T) {
	s, err := inproc.Feed(epoch)
	require.NoError(t, err)
	defer s.Close()
	const subscribers = 100
	type listener struct {
		session transport.Session
		worker  transport.Worker
		out     []byte
	}
	engine := s.Server().Engine()
	worker := engine.NewWorker()
	var all []*listener
	for range subscribers {
		session, rejection := engine.Open(quietPeer{})
		require.Empty(t, rejection)
		turn := session.Feed(worker, []byte("SUBSCRIBE news\r\n"), nil)
		require.Contains(t, string(turn.Out), "subscribe")
		all = append(all, &listener{session, worker, turn.Out})
	}
	publisher, _ := engine.Open(quietPeer{})
	packet, out := []byte(strings.Repeat("PUBLISH news 0123456789\r\n", 3)), []byte(nil)
	allocs := testing.AllocsPerRun(200, func() {
		turn := publisher.Feed(worker, packet, out[:0])
		out = turn.Out
		for _, l := range all {
			turn := l.session.Feed(l.worker, nil, l.out[:0])
			l.out = turn.Out
		}
	})
	require.Equal(t, strings.Repeat(":100\r\n", 3), string(out))
	require.Equal(t, strings.Repeat(told("2", "news", "0123456789"), 3), string(all[99].out))
	require.Zero(t, allocs)
	for _, l := range all {
		l.session.Closed()
	}
	publisher.Closed()
	require.Zero(t, engine.ClientMemory())
}

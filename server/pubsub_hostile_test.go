package server_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSubscribersAreKilledMeanwhile: clients that are killed, cut off or hang up while
// messages are handed to them take nobody else's, and leave no memory behind.
func TestSubscribersAreKilledMeanwhile(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--client-output-buffer-limit", "pubsub 300kb 0 0")
		good := f.listen("3", "news")
		c := f.dial()
		const messages = 600
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for i := range 25 {
					victim := f.dial()
					id := victim.id()
					victim.do("SUBSCRIBE", "news")
					switch i % 3 {
					case 0:
						killer := f.dial()
						killer.do("CLIENT", "KILL", "ID", id) // it may be cut off by now
						require.NoError(t, killer.Close())
					case 1: // it reads nothing more
					}
					_ = victim.Close() // it may be gone
				}
			})
		}
		body := strings.Repeat("m", 9000)
		for range messages {
			require.Equal(t, byte(':'), c.do("PUBLISH", "news", body)[0])
			require.Equal(t, told("3", "news", body), good.reply())
		}
		all.Wait()
		require.NoError(t, good.Close())
		eventually(t, "all is forgotten", func() bool {
			return f.Engine().ClientMemory() == 0 && c.do("PUBSUB", "CHANNELS") == "*0\r\n"
		})
	})
}

// TestManyChannels: ten thousand channels of one client, left by RESET, UNSUBSCRIBE in a
// transaction, or hanging up, leave nothing behind, on Go's heap neither.
func TestManyChannels(t *testing.T) {
	const channels = 10_000
	f := start(t, transports()[0])
	c := f.dial()
	names := []string{"SUBSCRIBE"}
	for i := range channels {
		names = append(names, fmt.Sprint("channel:", i))
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var first uint64
	for round := range 6 {
		l := f.dial()
		if round == 0 {
			l.do("HELLO", "3")
		}
		l.command(names...)
		for range channels {
			l.reply()
		}
		require.Equal(t, ":1\r\n", c.do("PUBLISH", fmt.Sprint("channel:", round*7), "m"))
		l.reply()
		require.Greater(t, f.Engine().ClientMemory(), int64(channels*100))
		switch round % 3 {
		case 0:
			l.send("RESET\r\nPING\r\n")
			l.expect("+RESET\r\n", "+PONG\r\n")
			require.Equal(t, ":0\r\n", c.do("PUBLISH", "channel:5", "m"))
		case 1:
			l.send("UNSUBSCRIBE\r\nMULTI\r\nPING\r\nEXEC\r\n")
			for range channels {
				l.reply()
			}
			l.expect("+OK\r\n", "+QUEUED\r\n", array("+PONG\r\n"))
		}
		require.NoError(t, l.Close())
		eventually(t, "all is forgotten", func() bool { return f.Engine().ClientMemory() == 0 })
		if round == 1 {
			first = heap()
		}
	}
	require.Less(t, heap(), first+1<<20)
}

// TestLeavingManyChannelsInATransactionIsRefused: ending very many subscriptions is more than
// a loop does in one go, and a transaction has no slices. Few are ended as ever.
func TestLeavingManyChannelsInATransactionIsRefused(t *testing.T) {
	const few, many = 1000, 4000
	f := start(t, transports()[0])
	c, l := f.dial(), f.dial()
	l.do("HELLO", "3")
	subscribe := func(prefix string, n int) []string {
		words := []string{"SUBSCRIBE"}
		for i := range n {
			words = append(words, fmt.Sprint(prefix, i))
		}
		return words
	}
	answers := func(n int) {
		for range n {
			l.reply()
		}
	}
	refused := "-ERR subscriptions cannot change in a transaction that may take long\r\n"
	l.command(subscribe("a", many)...)
	answers(many)
	l.send("MULTI\r\nUNSUBSCRIBE\r\nSET k v\r\nEXEC\r\n")
	l.expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", array(refused, "+OK\r\n"))
	require.Equal(t, ":1\r\n", c.do("PUBLISH", "a1", "m"))
	l.expect(told("3", "a1", "m"))
	l.send("UNSUBSCRIBE\r\n")
	answers(many)

	l.send("MULTI\r\n")
	l.expect("+OK\r\n")
	l.command(subscribe("b", few)...)
	l.send("UNSUBSCRIBE\r\nEXEC\r\n")
	l.expect("+QUEUED\r\n", "+QUEUED\r\n", array(refused, refused))

	l.command(subscribe("c", few)...)
	answers(few)
	l.send("MULTI\r\nUNSUBSCRIBE\r\nEXEC\r\nPING\r\n")
	for l.reply() != "+PONG\r\n" {
	}
	require.Equal(t, ":0\r\n", c.do("PUBLISH", "c1", "m"))
}

// TestUnsubscribeInATransactionTakesEffectWithExec: UNSUBSCRIBE inside of MULTI takes
// effect with EXEC and not before, and a message that came between comes before its
// answer.
func TestUnsubscribeInATransactionTakesEffectWithExec(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		l, c := f.dial(), f.dial()
		l.do("HELLO", "3")
		l.do("SUBSCRIBE", "news")
		l.send("MULTI\r\nUNSUBSCRIBE news\r\nPUBLISH news own\r\nSUBSCRIBE other\r\n")
		l.expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n")
		require.Equal(t, ":1\r\n", c.do("PUBLISH", "news", "m"))
		l.expect(told("3", "news", "m"))
		require.Equal(t, ":0\r\n", c.do("PUBLISH", "other", "m"))
		l.send("EXEC\r\nPING\r\n")
		var all []string
		for {
			r := l.reply()
			all = append(all, r)
			if strings.HasSuffix(r, "+PONG\r\n") {
				break
			}
		}
		require.Contains(t, strings.Join(all, ""), "unsubscribe")
		require.NotContains(t, strings.Join(all, ""), "own")
		require.Equal(t, ":0\r\n", c.do("PUBLISH", "news", "m"))
		require.Equal(t, ":1\r\n", c.do("PUBLISH", "other", "m"))
		l.expect(told("3", "other", "m"))
		l.send("RESET\r\nPING\r\n")
		l.expect("+RESET\r\n", "+PONG\r\n")
		require.Equal(t, ":0\r\n", c.do("PUBLISH", "other", "m"))
	})
}

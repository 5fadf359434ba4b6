package pubsub_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestManyChannels: after a client ends ten thousand subscriptions by RESET, by UNSUBSCRIBE in a
// transaction or by disconnecting, nothing of them is left, also on Go's heap.
func TestManyChannels(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const channels = 10_000
		f := w.Start()
		c := f.Dial()
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
			l := f.Dial()
			if round == 0 {
				l.Do("HELLO", "3")
			}
			l.Command(names...)
			for range channels {
				l.Reply()
			}
			require.Equal(t, ":1\r\n", c.Do("PUBLISH", fmt.Sprint("channel:", round*7), "m"))
			l.Reply()
			require.Greater(t, f.Engine().ClientMemory(), int64(channels*100))
			switch round % 3 {
			case 0:
				l.Send("RESET\r\nPING\r\n")
				l.Expect("+RESET\r\n", "+PONG\r\n")
				require.Equal(t, ":0\r\n", c.Do("PUBLISH", "channel:5", "m"))
			case 1:
				l.Send("UNSUBSCRIBE\r\nMULTI\r\nPING\r\nEXEC\r\n")
				for range channels {
					l.Reply()
				}
				l.Expect("+OK\r\n", "+QUEUED\r\n", inproc.Array("+PONG\r\n"))
			}
			require.NoError(t, l.Close())
			w.Settle()
			require.Zero(t, f.Engine().ClientMemory())
			if round == 1 {
				first = heap()
			}
		}
		require.Less(t, heap(), first+1<<20)
	})
}

// TestLeavingManyChannelsInATransactionIsRefused: a transaction cannot end very many
// subscriptions, since this is too long for one turn of a loop and a transaction is not divided
// into slices. It can end few.
func TestLeavingManyChannelsInATransactionIsRefused(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const few, many = 1000, 4000
		f := w.Start()
		c, l := f.Dial(), f.Dial()
		l.Do("HELLO", "3")
		subscribe := func(prefix string, n int) []string {
			words := []string{"SUBSCRIBE"}
			for i := range n {
				words = append(words, fmt.Sprint(prefix, i))
			}
			return words
		}
		answers := func(n int) {
			for range n {
				l.Reply()
			}
		}
		refused := "-ERR subscriptions cannot change in a transaction that may take long\r\n"
		l.Command(subscribe("a", many)...)
		answers(many)
		l.Send("MULTI\r\nUNSUBSCRIBE\r\nSET k v\r\nEXEC\r\n")
		l.Expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", inproc.Array(refused, "+OK\r\n"))
		require.Equal(t, ":1\r\n", c.Do("PUBLISH", "a1", "m"))
		l.Expect(told("3", "a1", "m"))
		l.Send("UNSUBSCRIBE\r\n")
		answers(many)

		l.Send("MULTI\r\n")
		l.Expect("+OK\r\n")
		l.Command(subscribe("b", few)...)
		l.Send("UNSUBSCRIBE\r\nEXEC\r\n")
		l.Expect("+QUEUED\r\n", "+QUEUED\r\n", inproc.Array(refused, refused))

		l.Command(subscribe("c", few)...)
		answers(few)
		l.Send("MULTI\r\nUNSUBSCRIBE\r\nEXEC\r\nPING\r\n")
		for l.Reply() != "+PONG\r\n" {
		}
		require.Equal(t, ":0\r\n", c.Do("PUBLISH", "c1", "m"))
	})
}

// TestUnsubscribeInATransactionTakesEffectWithExec: UNSUBSCRIBE inside MULTI takes effect with
// EXEC, and a message that arrives before comes before its reply.
func TestUnsubscribeInATransactionTakesEffectWithExec(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		l, c := f.Dial(), f.Dial()
		l.Do("HELLO", "3")
		l.Do("SUBSCRIBE", "news")
		l.Send("MULTI\r\nUNSUBSCRIBE news\r\nPUBLISH news own\r\nSUBSCRIBE other\r\n")
		l.Expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n")
		require.Equal(t, ":1\r\n", c.Do("PUBLISH", "news", "m"))
		l.Expect(told("3", "news", "m"))
		require.Equal(t, ":0\r\n", c.Do("PUBLISH", "other", "m"))
		l.Send("EXEC\r\nPING\r\n")
		var all []string
		for {
			r := l.Reply()
			all = append(all, r)
			if strings.HasSuffix(r, "+PONG\r\n") {
				break
			}
		}
		require.Contains(t, strings.Join(all, ""), "unsubscribe")
		require.NotContains(t, strings.Join(all, ""), "own")
		require.Equal(t, ":0\r\n", c.Do("PUBLISH", "news", "m"))
		require.Equal(t, ":1\r\n", c.Do("PUBLISH", "other", "m"))
		l.Expect(told("3", "other", "m"))
		l.Send("RESET\r\nPING\r\n")
		l.Expect("+RESET\r\n", "+PONG\r\n")
		require.Equal(t, ":0\r\n", c.Do("PUBLISH", "other", "m"))
	})
}

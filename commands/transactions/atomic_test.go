package transactions_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/server"
)

// TestExecIsAtomic: sixteen clients run transactions at once. Some charge two keys, and the
// others read both. No client sees one key charged and the other not, although flushes, wide
// transactions and single calls run in between.
func TestExecIsAtomic(t *testing.T) {
	const limit = 1_000_000
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		charge := fmt.Sprintf("MULTI\r\nSW.ALLOW x %d 60\r\nTB.ACQUIRE y %d 1 1000\r\nEXEC\r\n", limit, limit)
		look := fmt.Sprintf("MULTI\r\nSW.ALLOW x %d 60 0\r\nTB.ACQUIRE y %d 1 1000 0\r\nEXEC\r\n", limit, limit)
		scripts := []string{
			charge, look, look, charge, look,
			"MULTI\r\nDBSIZE\r\nKEYS *\r\nEXEC\r\n", "MULTI\r\nFLUSHALL\r\nPING\r\nEXEC\r\n", "MULTI\r\nRENAME x z\r\nRENAME z x\r\nEXEC\r\n",
		}
		var all sync.WaitGroup
		var compared atomic.Int64
		for i := range 16 {
			c := s.Dial()
			all.Go(func() {
				for n := range 150 {
					if n%10 == 0 { // a call outside a transaction
						c.Do("SW.ALLOW", fmt.Sprint("other", i), "5", "60")
					}
					c.Send(scripts[(i+n)%len(scripts)])
					c.Expect(inproc.OK, inproc.Queued, inproc.Queued)
					reply := c.Reply()
					if n := inproc.Numbers(reply); len(n) == 10 {
						require.Equal(t, n[2], n[7], "%q", reply)
						compared.Add(1)
					}
				}
			})
		}
		all.Wait()
		require.Positive(t, compared.Load(), "no reply had both")
	})
}

// TestExecIsOneInstant: the clock stands still inside a transaction, however long it takes,
// although each reading of the real clock is a millisecond later than the one before.
func TestExecIsOneInstant(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		var readings atomic.Int64
		now := func() int64 { return int64(inproc.Epoch) + readings.Add(1)*int64(time.Millisecond) }
		s := w.StartWith(func(o *server.Options) { o.Time = clock.Options{}.WithSources(now, now, now) })
		c := s.Dial()
		const between = 2000
		c.Send("MULTI\r\nTIME\r\n" + strings.Repeat("KEYS *\r\nSW.ALLOW k 100000 3600 1 LOG\r\n", between) + "TIME\r\nEXEC\r\n")
		c.Expect(inproc.OK)
		for range 2*between + 2 {
			c.Expect(inproc.Queued)
		}
		_, err := c.R.ReadString('\n')
		require.NoError(t, err)
		first := c.Reply()
		for range 2 * between {
			c.Reply()
		}
		require.Equal(t, first, c.Reply(), "TIME inside EXEC")
		require.Contains(t, c.Do("RL.INFO", "k"), inproc.Bulk("entries")+":1\r\n", "charges of one instant are one entry")
		require.NotEqual(t, first, c.Do("TIME"))
	})
}

// TestWatchIsCompareAndSet: many clients decrement a key: they read it under WATCH, and charge it
// only if no other client has changed it. No charge is lost or made twice.
func TestWatchIsCompareAndSet(t *testing.T) {
	const clients, each, limit = 16, 20, 100_000
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		peek := fmt.Sprintf("SW.ALLOW k %d 3600 0\r\n", limit)
		var all sync.WaitGroup
		var failed atomic.Int64
		for range clients {
			c := s.Dial()
			all.Go(func() {
				for done := 0; done < each; {
					c.Send("WATCH k\r\n" + peek)
					c.Expect(inproc.OK)
					seen := inproc.Numbers(c.Reply())[2]
					c.Send(fmt.Sprintf("MULTI\r\nSW.ALLOW k %d 3600\r\nEXEC\r\n", limit))
					c.Expect(inproc.OK, inproc.Queued)
					reply := c.Reply()
					if reply == "*-1\r\n" {
						failed.Add(1)
						continue
					}
					require.Equal(t, seen-1, inproc.Numbers(reply)[2])
					done++
				}
			})
		}
		all.Wait()
		c := s.Dial()
		c.Send(peek)
		require.EqualValues(t, limit-clients*each, inproc.Numbers(c.Reply())[2])
		t.Logf("%d attempts were repeated", failed.Load())
	})
}

package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestManyWaitersEveryEnding: a crowd that waits for three places, of whom some hang up,
// some are unblocked or killed, some give up after a timeout, while others pass without
// waiting. Nobody is forgotten, and no place is given twice or lost.
func TestManyWaitersEveryEnding(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		const clients, places = 48, 3
		admin := f.dial()
		var holding, most, granted, refused atomic.Int64
		var all sync.WaitGroup
		var gone sync.Map // members whose client has hung up
		for i := range clients {
			c := f.dial()
			r := rand.New(rand.NewPCG(7, uint64(i)))
			all.Go(func() {
				me := fmt.Sprintf("member:%d", i)
				for range 20 {
					timeout := []string{"0", "0.5", "3"}[r.IntN(3)]
					c.command("CC.ACQUIRE", "room", fmt.Sprint(places), "86400", me, "BLOCK", timeout)
					text, err := readReply(c.r)
					switch {
					case err != nil: // killed or hung up
						return
					case strings.HasPrefix(text, "-UNBLOCKED"), strings.HasPrefix(text, "*5\r\n:1\r\n"):
						refused.Add(1)
					default:
						require.Contains(t, text, "*5\r\n:0\r\n")
						granted.Add(1)
						n := holding.Add(1)
						for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
						}
						holding.Add(-1)
						c.command("CC.RELEASE", "room", me)
						if text, err = readReply(c.r); err != nil {
							return
						}
						require.Equal(t, ":1\r\n", text)
					}
					if i%8 == 7 && r.IntN(10) == 0 {
						c.command("CC.ACQUIRE", "room", fmt.Sprint(places), "86400", me, "BLOCK", "0")
						_ = c.Close() // while it waits, or holds a place
						gone.Store(me, true)
						return
					}
				}
			})
		}
		ended := make(chan struct{})
		go func() { all.Wait(); close(ended) }()
		r := rand.New(rand.NewPCG(8, 8))
		for done := false; !done; {
			select {
			case <-ended:
				done = true
			default:
				f.clock.Advance(100 * time.Millisecond)
				admin.do("CLIENT", "UNBLOCK", fmt.Sprint(2+r.IntN(clients)), []string{"TIMEOUT", "ERROR"}[r.IntN(2)])
				gone.Range(func(member, _ any) bool {
					admin.do("CC.RELEASE", "room", member.(string)) // its lease would end tomorrow
					return true
				})
			}
		}
		require.Positive(t, granted.Load())
		require.Positive(t, refused.Load())
		require.LessOrEqual(t, most.Load(), int64(places))
		eventually(t, "nobody waits", func() bool { return f.Keyspace().Waiting() == 0 })
		eventually(t, "no timer is left", func() bool { return f.clock.Timers() == 0 })
	})
}

// TestBlockedCallersNeverExceedTheWindow has clients that wait and clients that do not. A
// window of three units gives three in every minute.
func TestBlockedCallersNeverExceedTheWindow(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		const waiters, limit = 30, 3
		conns := make([]*client, waiters)
		answered := make(chan string, waiters)
		for i := range conns {
			conns[i] = f.dial()
			conns[i].send(fmt.Sprintf("SW.ALLOW k %d 60 1 FIXED BLOCK 0\r\n", limit))
			go func() {
				text, _ := readReply(conns[i].r) // an empty text fails below
				answered <- text
			}()
		}
		other := f.dial()
		for left := waiters; left > 0; {
			taken := 0
			if strings.HasPrefix(other.do("SW.ALLOW", "k", fmt.Sprint(limit), "60", "1", "FIXED"), "*5\r\n:0") {
				taken = 1
			}
			for got := min(limit-taken, left); got > 0; got-- {
				select {
				case text := <-answered:
					require.True(t, strings.HasPrefix(text, "*5\r\n:0\r\n"), "%q", text)
					left--
				case <-time.After(patience):
					require.Fail(t, "somebody was forgotten", "%d left", left)
				}
			}
			require.Empty(t, answered, "more than %d in a minute", limit)
			f.clock.Advance(time.Minute)
		}
	})
}

package limiters_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestManyWaitersEveryEnding: many clients wait for three places. Some of them disconnect, some
// are unblocked or killed, some time out, and other clients pass without waiting. Each client
// gets its reply, and no place is given twice or lost.
func TestManyWaitersEveryEnding(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed()
		const clients, places = 48, 3
		admin := f.Dial()
		var holding, most, granted, refused atomic.Int64
		var all sync.WaitGroup
		var gone sync.Map // members whose client has disconnected
		for i := range clients {
			c := f.Dial()
			r := rand.New(rand.NewPCG(7, uint64(i)))
			all.Go(func() {
				me := fmt.Sprintf("member:%d", i)
				for range 20 {
					timeout := []string{"0", "0.5", "3"}[r.IntN(3)]
					c.Command("CC.ACQUIRE", "room", fmt.Sprint(places), "86400", me, "BLOCK", timeout)
					text, err := inproc.ReadReply(c.R)
					switch {
					case err != nil: // killed or disconnected
						return
					case strings.HasPrefix(text, "-UNBLOCKED"), strings.HasPrefix(text, "*5\r\n:1\r\n"):
						refused.Add(1)
					default:
						require.Contains(t, text, "*5\r\n:0\r\n")
						granted.Add(1)
						n := holding.Add(1)
						for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
						}
						time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
						holding.Add(-1)
						c.Command("CC.RELEASE", "room", me)
						if text, err = inproc.ReadReply(c.R); err != nil {
							return
						}
						require.Equal(t, ":1\r\n", text)
					}
					if i%8 == 7 && r.IntN(10) == 0 {
						c.Command("CC.ACQUIRE", "room", fmt.Sprint(places), "86400", me, "BLOCK", "0")
						_ = c.Close() // while it waits or holds a place
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
				w.Advance(100 * time.Millisecond)
				admin.Do("CLIENT", "UNBLOCK", fmt.Sprint(2+r.IntN(clients)), []string{"TIMEOUT", "ERROR"}[r.IntN(2)])
				gone.Range(func(member, _ any) bool {
					admin.Do("CC.RELEASE", "room", member.(string)) // its lease would expire only tomorrow
					return true
				})
			}
		}
		require.Positive(t, granted.Load())
		require.Positive(t, refused.Load())
		require.LessOrEqual(t, most.Load(), int64(places))
		w.Settle()
		require.Zero(t, f.Keyspace().Waiting())
		w.Settle()
		require.Zero(t, clock.Timers())
	})
}

// TestBlockedCallersNeverExceedTheWindow: clients with and without BLOCK share a window. A limit
// of three units allows three in every ten seconds.
func TestBlockedCallersNeverExceedTheWindow(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		const window, waiters, limit = 10 * time.Second, 15, 3
		w.Advance(window - time.Duration(inproc.Epoch)%window)
		answered := make(chan string, waiters)
		for range waiters {
			c := f.Dial()
			c.Send(fmt.Sprintf("SW.ALLOW k %d 10 1 FIXED BLOCK 0\r\n", limit))
			go func() {
				text, _ := inproc.ReadReply(c.R) // an empty text fails the check below
				answered <- text
			}()
		}
		other := f.Dial()
		for left := waiters; left > 0; {
			taken := 0
			if strings.HasPrefix(other.Do("SW.ALLOW", "k", fmt.Sprint(limit), "10", "1", "FIXED"), "*5\r\n:0") {
				taken = 1
			}
			w.Settle()
			require.Len(t, answered, min(limit-taken, left), "in a window")
			for range len(answered) {
				text := <-answered
				require.True(t, strings.HasPrefix(text, "*5\r\n:0\r\n"), "%q", text)
				left--
			}
			// The next window begins for the waiting clients and for the one that calls at once.
			time.Sleep(window)
		}
	})
}

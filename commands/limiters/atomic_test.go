package limiters_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestMultiOverOverlappingKeys: 32 clients charge random sets of the same few keys in random
// order. No client waits forever, and the remaining quota of each key is what the allowed calls
// leave: a denied call has charged nothing.
func TestMultiOverOverlappingKeys(t *testing.T) {
	const clients, calls, keys, limit = 32, 100, 8, 150
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		var used [keys]atomic.Int64
		var denied atomic.Int64
		var all sync.WaitGroup
		for i := range clients {
			c := s.Dial()
			r := rand.New(rand.NewPCG(3, uint64(i)))
			all.Go(func() {
				for range calls {
					chosen := r.Perm(keys)[:1+r.IntN(keys)]
					args := []string{"RL.MULTI", fmt.Sprint(len(chosen))}
					for _, k := range chosen {
						args = append(args, fmt.Sprint("k", k))
					}
					quantities := make([]int64, len(chosen))
					for j := range chosen {
						quantities[j] = int64(r.IntN(3))
						if chosen[j]%2 == 0 {
							args = append(args, "SW", fmt.Sprint(limit), "3600", fmt.Sprint(quantities[j]))
						} else {
							args = append(args, "TB", fmt.Sprint(limit), "1", "1000000", fmt.Sprint(quantities[j]))
						}
					}
					inside := r.IntN(3) == 0
					if inside {
						c.Send("MULTI\r\n" + string(inproc.Encode(nil, args...)) + "EXEC\r\n")
						c.Expect(inproc.OK, inproc.Queued)
					} else {
						c.Command(args...)
					}
					if inproc.Numbers(c.Reply())[0] != 0 {
						denied.Add(1)
						continue
					}
					for j, k := range chosen {
						used[k].Add(quantities[j])
					}
				}
			})
		}
		all.Wait()
		require.Positive(t, denied.Load())
		c := s.Dial()
		for k := range keys {
			if k%2 == 0 {
				c.Command("SW.ALLOW", fmt.Sprint("k", k), fmt.Sprint(limit), "3600", "0")
			} else {
				c.Command("TB.ACQUIRE", fmt.Sprint("k", k), fmt.Sprint(limit), "1", "1000000", "0")
			}
			require.Equal(t, limit-used[k].Load(), inproc.Numbers(c.Reply())[2], "key %d", k)
		}
	})
}

// TestNoOverAdmission: for 400 ms, 32 clients call over a network with delays. Between any two
// admissions, by the clock of the clients, there are at most as many admissions as burst and
// elapsed time allow.
func TestNoOverAdmission(t *testing.T) {
	const clients, burst, perSecond = 32, 20, 500
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		type admission struct{ call, reply time.Duration }
		admissions := make([][]admission, clients)
		conns := make([]*inproc.Client, clients)
		for i := range conns {
			host, rng := w.Host(), rand.New(rand.NewPCG(9, uint64(i)))
			delay := func() time.Duration { return time.Duration(rng.IntN(int(2 * time.Millisecond))) }
			w.Net.Delay(host, s.Host, delay)
			conns[i] = s.DialFrom(host)
		}
		began := time.Now()
		var all sync.WaitGroup
		var calls atomic.Int64
		for i, conn := range conns {
			all.Go(func() {
				for time.Since(began) < 400*time.Millisecond {
					call := time.Since(began)
					reply := conn.Do("CL.THROTTLE", "k", fmt.Sprint(burst-1), fmt.Sprint(perSecond), "1")
					calls.Add(1)
					if inproc.Numbers(reply)[0] == 0 {
						admissions[i] = append(admissions[i], admission{call, time.Since(began)})
					}
				}
			})
		}
		all.Wait()
		merged := slices.Concat(admissions...)
		require.Greater(t, len(merged), perSecond/4)
		require.Greater(t, calls.Load(), int64(2*len(merged)), "most were denied")
		for _, from := range merged {
			for _, to := range merged {
				inside := 0 // certainly between the two: called after the first was answered, and answered before the second was called
				for _, a := range merged {
					if a.call >= from.call && a.reply <= to.reply {
						inside++
					}
				}
				elapsed := float64(max(0, to.reply-from.call)) / float64(time.Second)
				require.LessOrEqual(t, inside, burst+1+int(elapsed*perSecond), "from %s to %s", from.call, to.reply)
			}
		}
	})
}

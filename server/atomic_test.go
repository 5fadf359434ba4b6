package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/server"
)

// numbers returns the integers of a reply of limiters, five for each.
func numbers(t *testing.T, reply string) (all []int64) {
	t.Helper()
	for _, line := range strings.Split(reply, "\r\n") {
		if rest, ok := strings.CutPrefix(line, ":"); ok {
			n, err := strconv.ParseInt(rest, 10, 64)
			require.NoError(t, err)
			all = append(all, n)
		}
	}
	return all
}

// TestExecIsAtomic: sixteen clients at once, of whom some charge two keys inside a
// transaction and the others look at both inside one. Nobody ever sees one key charged
// and not the other, though flushes, wide transactions and single calls come in between.
func TestExecIsAtomic(t *testing.T) {
	const limit = 1_000_000
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		charge := fmt.Sprintf("MULTI\r\nSW.ALLOW x %d 60\r\nTB.ACQUIRE y %d 1 1000\r\nEXEC\r\n", limit, limit)
		look := fmt.Sprintf("MULTI\r\nSW.ALLOW x %d 60 0\r\nTB.ACQUIRE y %d 1 1000 0\r\nEXEC\r\n", limit, limit)
		scripts := []string{
			charge, look, look, charge, look,
			"MULTI\r\nDBSIZE\r\nKEYS *\r\nEXEC\r\n", "MULTI\r\nFLUSHALL\r\nPING\r\nEXEC\r\n", "MULTI\r\nRENAME x z\r\nRENAME z x\r\nEXEC\r\n",
		}
		var all sync.WaitGroup
		var compared atomic.Int64
		for i := range 16 {
			c := f.dial()
			all.Go(func() {
				for n := range 150 {
					if n%10 == 0 { // something that is not a transaction
						c.do("SW.ALLOW", fmt.Sprint("other", i), "5", "60")
					}
					c.send(scripts[(i+n)%len(scripts)])
					c.expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n")
					reply := c.reply()
					if n := numbers(t, reply); len(n) == 10 {
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

// startReal is a server on the real clock; stop ends it.
func startReal(t *testing.T, kind string) (addr string, stop func()) {
	t.Helper()
	c, err := config.Load([]string{"--transport", kind}, nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := server.New(c, server.Options{Listeners: []net.Listener{l}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	return l.Addr().String(), func() {
		s.Stop()
		require.NoError(t, <-done)
	}
}

// TestExecIsOneInstant: the real clock stands still inside a transaction, however long
// it takes.
func TestExecIsOneInstant(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		addr, stop := startReal(t, kind)
		defer stop()
		c := dial(t, "tcp", addr)
		const between = 2000
		c.send("MULTI\r\nTIME\r\n" + strings.Repeat("KEYS *\r\nSW.ALLOW k 100000 3600 1 LOG\r\n", between) + "TIME\r\nEXEC\r\n")
		c.expect("+OK\r\n")
		for range 2*between + 2 {
			c.expect("+QUEUED\r\n")
		}
		_, err := c.r.ReadString('\n')
		require.NoError(t, err)
		first := c.reply()
		for range 2 * between {
			c.reply()
		}
		require.Equal(t, first, c.reply(), "TIME inside EXEC")
		require.Contains(t, c.do("RL.INFO", "k"), bulk("entries")+":1\r\n", "charges of one instant are one entry")
		require.NotEqual(t, first, c.do("TIME"))
	})
}

// TestWatchIsCompareAndSet: many clients count a key down by reading it, and charging it
// only if nobody else has since. No charge is lost, none is made twice.
func TestWatchIsCompareAndSet(t *testing.T) {
	const clients, each, limit = 16, 20, 100_000
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		peek := fmt.Sprintf("SW.ALLOW k %d 3600 0\r\n", limit)
		var all sync.WaitGroup
		var failed atomic.Int64
		for range clients {
			c := f.dial()
			all.Go(func() {
				for done := 0; done < each; {
					c.send("WATCH k\r\n" + peek)
					c.expect("+OK\r\n")
					seen := numbers(t, c.reply())[2]
					c.send(fmt.Sprintf("MULTI\r\nSW.ALLOW k %d 3600\r\nEXEC\r\n", limit))
					c.expect("+OK\r\n", "+QUEUED\r\n")
					reply := c.reply()
					if reply == "*-1\r\n" {
						failed.Add(1)
						continue
					}
					require.Equal(t, seen-1, numbers(t, reply)[2])
					done++
				}
			})
		}
		all.Wait()
		c := f.dial()
		c.send(peek)
		require.EqualValues(t, limit-clients*each, numbers(t, c.reply())[2])
		t.Logf("%d attempts were repeated", failed.Load())
	})
}

// TestMultiOverOverlappingKeys: 32 clients charge random sets of the same few keys in
// random order. Nobody waits for ever, and what is left of every key is what the allowed
// calls say: a denied one has charged nothing.
func TestMultiOverOverlappingKeys(t *testing.T) {
	const clients, calls, keys, limit = 32, 100, 8, 150
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		var used [keys]atomic.Int64
		var denied atomic.Int64
		var all sync.WaitGroup
		for i := range clients {
			c := f.dial()
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
						c.send("MULTI\r\n" + string(frame(args...)) + "EXEC\r\n")
						c.expect("+OK\r\n", "+QUEUED\r\n")
					} else {
						c.command(args...)
					}
					if numbers(t, c.reply())[0] != 0 {
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
		c := f.dial()
		for k := range keys {
			if k%2 == 0 {
				c.command("SW.ALLOW", fmt.Sprint("k", k), fmt.Sprint(limit), "3600", "0")
			} else {
				c.command("TB.ACQUIRE", fmt.Sprint("k", k), fmt.Sprint(limit), "1", "1000000", "0")
			}
			require.Equal(t, limit-used[k].Load(), numbers(t, c.reply())[2], "key %d", k)
		}
	})
}

// TestNoOverAdmission: 32 clients on the real clock. Between any two admissions there is
// at most what burst and elapsed time allow, by the client's own clock.
func TestNoOverAdmission(t *testing.T) {
	const clients, burst, perSecond = 32, 20, 500
	eachTransport(t, func(t *testing.T, kind string) {
		addr, stop := startReal(t, kind)
		defer stop()
		type admission struct{ call, reply time.Duration }
		admissions := make([][]admission, clients)
		conns := make([]*client, clients)
		for i := range conns {
			conns[i] = dial(t, "tcp", addr)
		}
		began := time.Now()
		var all sync.WaitGroup
		var admitted atomic.Int64
		for i, conn := range conns {
			all.Go(func() {
				// A machine that stalls may leave no time for a single call.
				for time.Since(began) < 400*time.Millisecond || admitted.Load() <= burst && time.Since(began) < patience {
					call := time.Since(began)
					reply := conn.do("CL.THROTTLE", "k", fmt.Sprint(burst-1), fmt.Sprint(perSecond), "1")
					if numbers(t, reply)[0] == 0 {
						admissions[i] = append(admissions[i], admission{call, time.Since(began)})
						admitted.Add(1)
					}
				}
			})
		}
		all.Wait()
		merged := slices.Concat(admissions...)
		require.Greater(t, len(merged), burst)
		for _, from := range merged {
			for _, to := range merged {
				inside := 0 // certainly between the two: called after one, answered before the other
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

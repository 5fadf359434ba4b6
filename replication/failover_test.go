package replication_test

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
)

// TestFailoverErrors: the texts and the order of the errors are those of Redis.
func TestFailoverErrors(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		fail := func(p *member, c protocol.Failover) resp.Error { return p.node.Failover(c) }
		require.Equal(t, resp.Error("ERR No failover in progress."), fail(a, protocol.Failover{Abort: true}))
		require.Equal(t, resp.Error("ERR FAILOVER requires connected replicas."), fail(a, protocol.Failover{}))
		b.follow(a)
		b.awaitUp()
		require.Equal(t, resp.Error("ERR FAILOVER is not valid when server is a replica."), fail(b, protocol.Failover{}))
		force := resp.Error("ERR FAILOVER with force option requires both a timeout and target HOST and IP.")
		require.Equal(t, force, fail(a, protocol.Failover{Force: true, Timeout: 1}))
		require.Equal(t, force, fail(a, protocol.Failover{Force: true, Host: "b", Port: "2"}))
		require.Equal(t, resp.Error("ERR FAILOVER target HOST and PORT is not a replica."), fail(a, protocol.Failover{Host: "b", Port: "3"}))
		require.False(t, a.host.paused.Load())
	})
}

// TestFailoverLosesNothing fails over under load again and again. Each change that one node
// accepted must be on the other.
func TestFailoverLosesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		b.follow(a)
		b.awaitUp()
		var accepted [2]int64
		stop := make(chan struct{})
		var load sync.WaitGroup
		for i, c := range []*client{a.client(), b.client()} {
			load.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if c.do(func(v *keyspace.Handle) {
						_, err := v.AddInt(0, []byte("n"), 1)
						require.NoError(t, err)
					}) {
						accepted[i]++
						time.Sleep(11 * time.Microsecond) // without a sleep, no time passes
					} else {
						time.Sleep(103 * time.Microsecond) // retry later: the change is refused
					}
				}
			})
		}
		primary, replica := a, b
		for range 10 {
			replica.awaitUp()
			eventually(t, "accepted", func() bool {
				return primary.node.Failover(protocol.Failover{}) == ""
			})
			primary.awaitUp()
			replica.awaitPrimary()
			primary.awaitField("master_failover_state", "no-failover")
			require.False(t, primary.host.paused.Load())
			require.True(t, primary.host.readOnly.Load())
			primary, replica = replica, primary
		}
		close(stop)
		load.Wait()
		awaitEqual(t, primary, replica)
		value, found, err := primary.ks.NewHandle().AppendString(nil, 0, []byte("n"))
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, strconv.FormatInt(accepted[0]+accepted[1], 10), string(value))
		require.Zero(t, a.keeper.suspended.Load(), "without a full sync")
		require.Equal(t, int64(1), b.keeper.suspended.Load())
	})
}

// TestFailoverEnds shows how a failover ends whose target does not answer.
func TestFailoverEnds(t *testing.T) {
	start := func(t *testing.T) (w *web, a, b *member) {
		w = newWeb(t)
		a, b = w.start("a:1", 0), w.start("b:2", 0)
		require.True(t, a.client().put("k", "v"))
		b.follow(a)
		awaitEqual(t, a, b)
		return w, a, b
	}
	leads := func(t *testing.T, a, b *member) {
		a.awaitField("master_failover_state", "no-failover")
		a.awaitPrimary()
		require.False(t, a.host.paused.Load())
		require.True(t, a.client().put("more", "v"))
		awaitEqual(t, a, b)
		require.Equal(t, int64(1), b.keeper.suspended.Load(), "without a full sync")
	}
	t.Run("timeout", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			w, a, b := start(t)
			release := w.hold(b.address)
			require.True(t, a.client().put("not there yet", "v"))
			require.Empty(t, a.node.Failover(protocol.Failover{Timeout: 10 * time.Millisecond}))
			a.awaitField("master_failover_state", "no-failover")
			release()
			leads(t, a, b)
		})
	})
	t.Run("abort while waiting", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			w, a, b := start(t)
			release := w.hold(b.address)
			require.True(t, a.client().put("not there yet", "v"))
			require.Empty(t, a.node.Failover(protocol.Failover{Host: "b", Port: "2"}))
			require.Equal(t, "waiting-for-sync", a.info()["master_failover_state"])
			require.True(t, a.host.paused.Load())
			require.Equal(t, resp.Error("ERR FAILOVER already in progress."), a.node.Failover(protocol.Failover{}))
			require.Empty(t, a.node.Failover(protocol.Failover{Abort: true}))
			release()
			leads(t, a, b)
		})
	})
	t.Run("the target loses its link while it is awaited", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			w, a, b := start(t)
			release := w.hold(b.address)
			require.True(t, a.client().put("not there yet", "v"))
			require.Empty(t, a.node.Failover(protocol.Failover{Host: "b", Port: "2"}))
			w.cut(b.address)
			release()
			b.awaitPrimary()
			a.awaitUp()
			require.True(t, b.client().put("of b", "v"))
			awaitEqual(t, b, a)
		})
	})
	t.Run("a replica that needs everything comes while the target is awaited", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			w, a, b := start(t)
			release := w.hold(b.address)
			require.True(t, a.client().put("not there yet", "v"))
			require.Empty(t, a.node.Failover(protocol.Failover{Host: "b", Port: "2"}))
			c := w.start("c:3", 0)
			c.follow(a)
			time.Sleep(2 * time.Second)
			require.Zero(t, c.keeper.suspended.Load(), "a full sync would not end")
			require.Equal(t, "waiting-for-sync", a.info()["master_failover_state"])
			release()
			b.awaitPrimary()
			a.awaitUp()
			awaitEqual(t, b, c)
		})
	})
	t.Run("abort under way", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			w, a, b := start(t)
			w.refuse(b.address, true)
			require.Empty(t, a.node.Failover(protocol.Failover{}))
			a.awaitField("master_failover_state", "failover-in-progress")
			require.Equal(t, "slave", a.info()["role"])
			require.True(t, a.host.readOnly.Load())
			require.True(t, a.host.paused.Load())
			require.Empty(t, a.node.Failover(protocol.Failover{Abort: true}))
			a.awaitField("master_failover_state", "no-failover") // otherwise b might take over before that
			w.refuse(b.address, false)
			leads(t, a, b)
		})
	})
	t.Run("orders to change the role", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			w, a, b := start(t)
			w.refuse(b.address, true)
			require.Empty(t, a.node.Failover(protocol.Failover{}))
			a.awaitField("master_failover_state", "failover-in-progress")
			a.node.Promote(nil)
			a.node.ReplicaOf("elsewhere", "1")
			require.Equal(t, "failover-in-progress", a.info()["master_failover_state"])
			w.refuse(b.address, false)
			b.awaitPrimary()
			a.awaitUp()
			require.True(t, b.client().put("of b", "v"))
			awaitEqual(t, b, a)
		})
	})
	t.Run("refused", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			w, a, b := start(t)
			w.refuse(b.address, true)
			require.Empty(t, a.node.Failover(protocol.Failover{}))
			a.awaitField("master_failover_state", "failover-in-progress")
			b.node.Promote(nil)
			b.awaitPrimary()
			b.node.ReplicaOf("nowhere", "1") // with a history that the primary does not know
			w.refuse(b.address, false)
			a.awaitField("master_failover_state", "no-failover")
			a.awaitPrimary()
			require.False(t, a.host.paused.Load())
		})
	})
	behindProxy := func(t *testing.T, w *web, a, b *member, proxy func(conn net.Conn)) {
		set := *b.set.Load()
		set.AnnounceIP, set.Port = "proxy", 9
		b.set.Store(&set)
		w.mu.Lock()
		w.plays["proxy:9"] = proxy
		w.mu.Unlock()
		w.cut(b.address)
		eventually(t, "b is back", func() bool {
			return a.node.Failover(protocol.Failover{Host: "proxy", Port: "9"}) == ""
		})
	}
	t.Run("the target lets nobody in", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			w, a, b := start(t)
			var asked atomic.Int64
			behindProxy(t, w, a, b, func(conn net.Conn) {
				asked.Add(1)
				defer func() { _ = conn.Close() }()
				for r := bufio.NewReader(conn); ; {
					words, err := readCommand(r)
					if err != nil {
						return
					}
					reply := "-NOAUTH Authentication required.\r\n"
					if words[0] == "PING" {
						reply = "+PONG\r\n"
					}
					if _, err := io.WriteString(conn, reply); err != nil {
						return
					}
				}
			})
			eventually(t, "asked", func() bool { return asked.Load() > 0 })
			leads(t, a, b)
			require.Equal(t, int64(1), asked.Load())
		})
	})
	t.Run("the answer is lost", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			w, a, b := start(t)
			var lost atomic.Bool
			behindProxy(t, w, a, b, func(conn net.Conn) {
				near, far := net.Pipe()
				var both sync.WaitGroup
				both.Go(func() { b.serve(far) })
				both.Go(func() {
					_, _ = io.Copy(near, conn)
					_ = near.Close()
				})
				for r := bufio.NewReader(near); ; {
					line, err := r.ReadString('\n')
					if err != nil || strings.HasPrefix(line, "+CONTINUE") && !lost.Swap(true) {
						break
					}
					if _, err = io.WriteString(conn, line); err != nil {
						break
					}
				}
				_, _ = conn.Close(), near.Close()
				both.Wait()
			})
			b.awaitPrimary()
			eventually(t, "a has learnt of it", func() bool {
				return lost.Load() && a.info()["master_failover_state"] == "no-failover"
			})
			require.Equal(t, "slave", a.info()["role"], "there are not two primaries")
		})
	})
	t.Run("the target dies before it is asked", func(t *testing.T) {
		for _, timeout := range []time.Duration{0, time.Second, 20 * time.Second} {
			bubble.Test(t, func(t *testing.T) {
				w, a, b := start(t)
				w.refuse(b.address, true)
				began := stopwatch()
				require.Empty(t, a.node.Failover(protocol.Failover{Host: "b", Port: "2", Timeout: timeout}))
				a.awaitField("master_failover_state", "failover-in-progress")
				a.awaitField("master_failover_state", "no-failover")
				require.InDelta(t, max(timeout, 5*time.Second).Seconds(), (stopwatch() - began).Seconds(), 0.2)
				w.refuse(b.address, false)
				leads(t, a, b)
			})
		}
	})
	// dies makes the target lose the first requests, and refuse connections from then on.
	dies := func(t *testing.T, w *web, a, b *member, lost func() bool) {
		behindProxy(t, w, a, b, func(conn net.Conn) {
			defer func() { _ = conn.Close() }()
			for r := bufio.NewReader(conn); ; {
				words, err := readCommand(r)
				if err != nil {
					return
				}
				if words[0] == "PSYNC" {
					if lost() {
						w.mu.Lock()
						delete(w.plays, "proxy:9")
						w.mu.Unlock()
					}
					return
				}
				if _, err := io.WriteString(conn, "+OK\r\n"); err != nil {
					return
				}
			}
		})
	}
	t.Run("the target dies when it is asked", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			w, a, b := start(t)
			began := stopwatch()
			dies(t, w, a, b, func() bool { return true })
			a.awaitField("master_failover_state", "failover-in-progress")
			leads(t, a, b)
			require.Less(t, stopwatch()-began, 5*time.Second)
		})
	})
	t.Run("the target may have accepted changes before it died", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			w, a, b := start(t)
			began := stopwatch()
			dies(t, w, a, b, func() bool { return stopwatch()-began > 6*time.Second })
			time.Sleep(time.Minute)
			require.Equal(t, "failover-in-progress", a.info()["master_failover_state"], "that is for an operator to decide")
			require.Empty(t, a.node.Failover(protocol.Failover{Abort: true}))
			leads(t, a, b)
		})
	})
	t.Run("force", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			w, a, b := start(t)
			release := w.hold(b.address)
			require.True(t, a.client().put("lost", "v"))
			require.Empty(t, a.node.Failover(protocol.Failover{Host: "b", Port: "2", Force: true, Timeout: time.Millisecond}))
			a.awaitField("master_failover_state", "failover-in-progress")
			release()
			b.awaitPrimary()
			awaitEqual(t, b, a)
			require.True(t, b.client().put("of b", "v"))
			awaitEqual(t, b, a)
		})
	})
}

// TestTakingOverIsConfirmed: a node that has taken over accepts no change before the old primary
// has acknowledged as a replica, or seems to have died.
func TestTakingOverIsConfirmed(t *testing.T) {
	for name, r := range map[string]struct {
		then   func(b *member)
		within time.Duration
	}{
		"acknowledged": {func(b *member) { b.node.Acknowledge(99, protocol.Ack{}) }, 0},
		"another says": {func(b *member) { b.node.Acknowledge(98, protocol.Ack{}) }, 5 * time.Second},
		"nobody says":  {func(*member) {}, 5 * time.Second},
		"it follows":   {func(b *member) { b.node.ReplicaOf("nowhere", "1") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWeb(t)
				a, b := w.start("a:1", 0), w.start("b:2", 0)
				b.follow(a)
				b.awaitUp()
				began := stopwatch()
				_, pump, err := b.node.PSync(protocol.PSync{
					Client: 99, Peer: &wire{news: make(chan struct{}, 1)}, Failover: true, ReplID: b.info()["master_replid"],
					Offset: int64(b.source.Offset()) + 1, Capa: protocol.CapaCell1,
				})
				require.Empty(t, err)
				defer pump.Closed()
				b.awaitPrimary()
				require.True(t, b.host.paused.Load())
				r.then(b)
				eventually(t, "goes on", func() bool { return !b.host.paused.Load() })
				require.InDelta(t, r.within.Seconds(), (stopwatch() - began).Seconds(), 0.2)
			})
		})
	}
}

// TestSyncTexts checks the answers to PSYNC of a node that cannot serve a replica.
func TestSyncTexts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		refused := func(p *member, c protocol.PSync) resp.Error {
			c.Capa = protocol.CapaCell1
			_, pump, err := p.node.PSync(c)
			require.Nil(t, pump)
			return err
		}
		id := a.info()["master_replid"]
		require.Equal(t, resp.Error("ERR PSYNC FAILOVER can't be sent to a master."), refused(a, protocol.PSync{Failover: true, ReplID: id}))
		b.node.ReplicaOf("nowhere", "1")
		require.Equal(t, resp.Error("ERR PSYNC FAILOVER replid must match my replid."), refused(b, protocol.PSync{Failover: true, ReplID: id}))
		require.Equal(t, resp.Error("NOMASTERLINK Can't SYNC while not connected with my master"), refused(b, protocol.PSync{ReplID: "?", Offset: -1}))
		b.follow(a)
		b.awaitUp()
		w.refuse(b.address, true)
		require.Empty(t, a.node.Failover(protocol.Failover{}))
		require.Equal(t, resp.Error("NOMASTERLINK Can't SYNC while failing over"), refused(a, protocol.PSync{ReplID: "?", Offset: -1}))
	})
}

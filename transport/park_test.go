package transport_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func testParkOrder(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	c := r.dial()
	for range 50 {
		c.send("echo 1", "park a", "echo 2", "wait b", "echo 3")
		c.expect("1")
		r.await(func() bool { return r.h.isParked("a") })
		r.session(0).push("pushed") // a session may speak while its command waits
		c.expect("pushed")
		r.h.finish("a", "A")
		c.expect("A", "2")
		r.await(func() bool { return r.h.isParked("b") })
		r.h.finish("b", "B")
		c.expect("B", "3")
	}
}

func testParkBacklog(t *testing.T, f factory) {
	lim := patientLimits()
	r := start(t, f, newLineHandler(), lim)
	c := r.dial()
	c.send("park a")
	const lines = 1_000_000 // more than a socket takes
	go io.WriteString(c, strings.Repeat("echo 1\n", lines))
	r.eventually(func() bool { return r.tr.Stats().BytesIn >= int64(lim.Backlog) })
	require.LessOrEqual(t, r.tr.Stats().BytesIn, int64(lim.Backlog+len("park a\n")))
	require.EqualValues(t, 1, r.session(0).feeds.Load())
	r.h.finish("a", "A")
	c.expect("A")
	n, err := io.CopyN(io.Discard, c.r, 2*lines)
	require.NoError(t, err)
	require.EqualValues(t, 2*lines, n)
}

func testParkHalfClose(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	c := r.dial()
	c.send("park a", "echo 2", "park b", "echo 3")
	require.NoError(t, c.closeWrite())
	r.await(func() bool { return r.h.isParked("a") })
	r.h.finish("a", "A")
	c.expect("A", "2")
	r.await(func() bool { return r.h.isParked("b") })
	r.h.finish("b", "B")
	c.expect("B", "3")
	c.expectEnd()
}

func testWaitHangUp(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	c := r.dial()
	c.send("wait a")
	r.await(func() bool { return r.h.isParked("a") })
	require.NoError(t, c.Close())
	r.await(r.session(0).closed.Load)
	r.h.finish("a", "nobody is there")

	// The end may have been read before the session began to wait.
	c = r.dial()
	c.send("park b", "wait c")
	require.NoError(t, c.Close())
	r.await(func() bool { return r.h.isParked("b") })
	r.h.finish("b", "B")
	r.await(r.session(1).closed.Load)
}

func testParkReset(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	for i, command := range []string{"park a", "wait a"} {
		c := r.dial()
		c.send(command, "echo never")
		r.await(func() bool { return r.h.isParked("a") })
		require.NoError(t, c.tcp().SetLinger(0))
		require.NoError(t, c.tcp().Close())
		r.await(r.session(i).closed.Load)
		r.h.finish("a", "A")
	}
}

func testWakeDuringFeed(t *testing.T, f factory) {
	h := newLineHandler()
	var wakes atomic.Int64
	wakes.Store(100)
	h.onFeed = func(s *lineSession) {
		if wakes.Add(-1) >= 0 {
			s.peer.Wake()
		}
	}
	r := start(t, f, h, patientLimits())
	c := r.dial()
	c.send("echo 1")
	c.expect("1")
	s := r.session(0)
	r.await(func() bool { return s.feeds.Load() == 101 })
	c.send("echo 2")
	c.expect("2")
	require.EqualValues(t, 102, r.session(0).feeds.Load())
}

func testWakeBeforeFirstByte(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	c := r.dial()
	r.session(0).push("hello")
	c.expect("hello")
	c.send("echo 1")
	c.expect("1")
}

func testWakeStorm(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	const clients, wakers, pushes = 8, 4, 1000
	var group sync.WaitGroup
	for i := range clients {
		c := r.dial()
		s := r.session(i)
		for w := range wakers {
			group.Go(func() {
				for n := range pushes {
					s.peer.Wake()
					s.push(fmt.Sprint("push ", w, " ", n))
				}
			})
		}
		group.Go(func() {
			for n := range pushes {
				if _, err := fmt.Fprintf(c, "echo %d\n", n); err != nil {
					return // the reader reports it
				}
			}
		})
		group.Go(func() { checkStorm(t, c, wakers, pushes) })
	}
	group.Wait()
}

// checkStorm reads all pushes and all replies and compares the order of each kind.
func checkStorm(t *testing.T, c *client, wakers, pushes int) {
	next := make([]int, wakers)
	echoed := 0
	for range wakers*pushes + pushes {
		line, err := c.r.ReadString('\n')
		if err != nil {
			t.Error(err)
			return
		}
		line = strings.TrimSuffix(line, "\n")
		var w, n int
		if _, err := fmt.Sscanf(line, "push %d %d", &w, &n); err == nil {
			if n != next[w] {
				t.Errorf("waker %d: push %d came, %d was due", w, n, next[w])
			}
			next[w]++
			continue
		}
		if line != fmt.Sprint(echoed) {
			t.Errorf("reply %q came, %d was due", line, echoed)
		}
		echoed++
	}
}

func testAbort(t *testing.T, f factory) {
	lim := patientLimits()
	lim.WriteTimeout = patience
	r := start(t, f, newLineHandler(), lim)
	idle, parked, writing := r.dial(), r.dial(), r.dial()
	idle.send("echo 1")
	idle.expect("1")
	parked.send("park a")
	r.await(func() bool { return r.h.isParked("a") })
	writing.send("big 50000000")
	r.eventually(func() bool { return r.tr.Stats().Pending > 0 })
	for _, s := range r.h.all() {
		s.peer.Abort()
		s.peer.Abort()
		r.await(s.closed.Load)
	}
	idle.expectEnd()
	parked.expectEnd()
	r.eventually(func() bool { return r.tr.Stats().Pending == 0 })
	r.h.finish("a", "A")
}

func testPeerAfterEnd(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	c := r.dial()
	s := r.session(0)
	addr := s.peer.RemoteAddr().String()
	require.NoError(t, c.Close())
	r.await(s.closed.Load)
	s.peer.Wake()
	s.peer.Abort()
	s.peer.Wake()
	require.Equal(t, addr, s.peer.RemoteAddr().String())
	d := r.dial()
	d.send("echo 1")
	d.expect("1")
}

func testBarrier(t *testing.T, f factory) {
	h := newLineHandler()
	r := start(t, f, h, patientLimits())
	const clients = 20
	var all []*client
	for i := range clients {
		c := r.dial()
		c.send("sync 7", "echo behind")
		all = append(all, c)
		r.session(i)
	}
	r.await(func() bool { return h.syncing() >= clients })
	asked := h.asked.Load()
	h.all()[0].peer.Wake() // does not release anything
	r.await(func() bool { return h.asked.Load() > asked })
	r.pass(0)
	require.Zero(t, r.tr.Stats().BytesOut, "nothing leaves before the log has it")
	h.synced(7)
	for _, c := range all {
		c.expect("synced 7", "behind")
	}
	for _, s := range h.all() {
		s.push("still awake")
	}
	for _, c := range all {
		c.expect("still awake")
		c.send("sync 5") // long since on disk
		c.expect("synced 5")
	}
	// Neither Close nor the end of input lets a reply out early.
	all[0].send("sync 9", "bye")
	all[1].send("sync 9")
	require.NoError(t, all[1].closeWrite())
	r.await(func() bool { return h.syncing() >= 2 })
	h.synced(9)
	all[0].expect("synced 9", "bye")
	all[0].expectEnd()
	all[1].expect("synced 9")
	all[1].expectEnd()
}

func testBarrierAbort(t *testing.T, f factory) {
	h := newLineHandler()
	r := start(t, f, h, patientLimits())
	c := r.dial()
	c.send("sync 7")
	r.await(func() bool { return h.syncing() > 0 })
	r.session(0).peer.Abort()
	c.expectEnd()
	r.await(r.session(0).closed.Load)
	h.synced(7)
}

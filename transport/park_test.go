package transport_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

func testParkOrder(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	c := r.Dial()
	for range 50 {
		c.Send("echo 1", "park a", "echo 2", "wait b", "echo 3")
		c.Expect("1")
		r.Await(func() bool { return r.Handler.IsParked("a") })
		r.Session(0).Push("pushed") // a session may send pushes while its command is blocked
		c.Expect("pushed")
		r.Handler.Finish("a", "A")
		c.Expect("A", "2")
		r.Await(func() bool { return r.Handler.IsParked("b") })
		r.Handler.Finish("b", "B")
		c.Expect("B", "3")
	}
}

func testParkBacklog(t *testing.T, f transporttest.Factory) {
	lim := transporttest.PatientLimits()
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), lim)
	c := r.Dial()
	c.Send("park a")
	const lines = 1_000_000 // more than a socket takes
	go io.WriteString(c, strings.Repeat("echo 1\n", lines))
	r.Eventually(func() bool { return r.Transport.Stats().BytesIn >= int64(lim.Backlog) })
	require.LessOrEqual(t, r.Transport.Stats().BytesIn, int64(lim.Backlog+len("park a\n")))
	require.EqualValues(t, 1, r.Session(0).Feeds.Load())
	r.Handler.Finish("a", "A")
	c.Expect("A")
	n, err := io.CopyN(io.Discard, c.Reader, 2*lines)
	require.NoError(t, err)
	require.EqualValues(t, 2*lines, n)
}

func testParkHalfClose(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	c := r.Dial()
	c.Send("park a", "echo 2", "park b", "echo 3")
	require.NoError(t, c.CloseWrite())
	r.Await(func() bool { return r.Handler.IsParked("a") })
	r.Handler.Finish("a", "A")
	c.Expect("A", "2")
	r.Await(func() bool { return r.Handler.IsParked("b") })
	r.Handler.Finish("b", "B")
	c.Expect("B", "3")
	c.ExpectEnd()
}

func testWaitHangUp(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	c := r.Dial()
	c.Send("wait a")
	r.Await(func() bool { return r.Handler.IsParked("a") })
	require.NoError(t, c.Close())
	r.Await(r.Session(0).Gone.Load)
	r.Handler.Finish("a", "nobody is there")

	// The end of input may be read before the session begins to wait.
	c = r.Dial()
	c.Send("park b", "wait c")
	require.NoError(t, c.Close())
	r.Await(func() bool { return r.Handler.IsParked("b") })
	r.Handler.Finish("b", "B")
	r.Await(r.Session(1).Gone.Load)
}

func testParkReset(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	for i, command := range []string{"park a", "wait a"} {
		c := r.Dial()
		c.Send(command, "echo never")
		r.Await(func() bool { return r.Handler.IsParked("a") })
		require.NoError(t, c.TCP().SetLinger(0))
		require.NoError(t, c.TCP().Close())
		r.Await(r.Session(i).Gone.Load)
		r.Handler.Finish("a", "A")
	}
}

func testWakeDuringFeed(t *testing.T, f transporttest.Factory) {
	h := transporttest.NewLineHandler()
	var wakes atomic.Int64
	wakes.Store(100)
	h.OnFeed = func(s *transporttest.LineSession) {
		if wakes.Add(-1) >= 0 {
			s.Peer.Wake()
		}
	}
	r := transporttest.Start(t, f, h, transporttest.PatientLimits())
	c := r.Dial()
	c.Send("echo 1")
	c.Expect("1")
	s := r.Session(0)
	r.Await(func() bool { return s.Feeds.Load() == 101 })
	c.Send("echo 2")
	c.Expect("2")
	require.EqualValues(t, 102, r.Session(0).Feeds.Load())
}

func testWakeBeforeFirstByte(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	c := r.Dial()
	r.Session(0).Push("hello")
	c.Expect("hello")
	c.Send("echo 1")
	c.Expect("1")
}

func testWakeStorm(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	const clients, wakers, pushes = 8, 4, 1000
	var group sync.WaitGroup
	for i := range clients {
		c := r.Dial()
		s := r.Session(i)
		for w := range wakers {
			group.Go(func() {
				for n := range pushes {
					s.Peer.Wake()
					s.Push(fmt.Sprint("push ", w, " ", n))
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

// checkStorm reads all pushes and all replies and checks the order of each kind.
func checkStorm(t *testing.T, c *transporttest.Client, wakers, pushes int) {
	next := make([]int, wakers)
	echoed := 0
	for range wakers*pushes + pushes {
		line, err := c.Reader.ReadString('\n')
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

func testAbort(t *testing.T, f transporttest.Factory) {
	lim := transporttest.PatientLimits()
	lim.WriteTimeout = transporttest.Patience
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), lim)
	idle, parked, writing := r.Dial(), r.Dial(), r.Dial()
	idle.Send("echo 1")
	idle.Expect("1")
	parked.Send("park a")
	r.Await(func() bool { return r.Handler.IsParked("a") })
	writing.Send("big 50000000")
	r.Eventually(func() bool { return r.Transport.Stats().Pending > 0 })
	for _, s := range r.Handler.Sessions() {
		s.Peer.Abort()
		s.Peer.Abort()
		r.Await(s.Gone.Load)
	}
	idle.ExpectEnd()
	parked.ExpectEnd()
	r.Eventually(func() bool { return r.Transport.Stats().Pending == 0 })
	r.Handler.Finish("a", "A")
}

func testPeerAfterEnd(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	c := r.Dial()
	s := r.Session(0)
	addr := s.Peer.RemoteAddr().String()
	require.NoError(t, c.Close())
	r.Await(s.Gone.Load)
	s.Peer.Wake()
	s.Peer.Abort()
	s.Peer.Wake()
	require.Equal(t, addr, s.Peer.RemoteAddr().String())
	d := r.Dial()
	d.Send("echo 1")
	d.Expect("1")
}

func testBarrier(t *testing.T, f transporttest.Factory) {
	h := transporttest.NewLineHandler()
	r := transporttest.Start(t, f, h, transporttest.PatientLimits())
	const clients = 20
	var all []*transporttest.Client
	for i := range clients {
		c := r.Dial()
		c.Send("sync 7", "echo behind")
		all = append(all, c)
		r.Session(i)
	}
	r.Await(func() bool { return h.Syncing() >= clients })
	asked := h.Asked.Load()
	h.Sessions()[0].Peer.Wake() // does not release any reply
	r.Await(func() bool { return h.Asked.Load() > asked })
	r.Pass(0)
	require.Zero(t, r.Transport.Stats().BytesOut, "nothing leaves before the log has it")
	h.Synced(7)
	for _, c := range all {
		c.Expect("synced 7", "behind")
	}
	for _, s := range h.Sessions() {
		s.Push("still awake")
	}
	for _, c := range all {
		c.Expect("still awake")
		c.Send("sync 5") // durable already
		c.Expect("synced 5")
	}
	// Neither Close nor the end of input sends a reply early.
	all[0].Send("sync 9", "bye")
	all[1].Send("sync 9")
	require.NoError(t, all[1].CloseWrite())
	r.Await(func() bool { return h.Syncing() >= 2 })
	h.Synced(9)
	all[0].Expect("synced 9", "bye")
	all[0].ExpectEnd()
	all[1].Expect("synced 9")
	all[1].ExpectEnd()
}

func testBarrierAbort(t *testing.T, f transporttest.Factory) {
	h := transporttest.NewLineHandler()
	r := transporttest.Start(t, f, h, transporttest.PatientLimits())
	c := r.Dial()
	c.Send("sync 7")
	r.Await(func() bool { return h.Syncing() > 0 })
	r.Session(0).Peer.Abort()
	c.ExpectEnd()
	r.Await(r.Session(0).Gone.Load)
	h.Synced(7)
}

package chaos_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
)

// cutBytes is how many of the first bytes of a link are the last that come over one.
const cutBytes = 4096

// cutAfter is after how many bytes links are cut: each number, or at full size not, those of the
// answers and some others.
func cutAfter() (all []int64) {
	for n := int64(0); n < cutBytes; n++ {
		if full || n%64 == 63 || n < 256 && n%4 == 0 {
			all = append(all, n)
		}
	}
	return all
}

// way is a direction of a connection through a cutter.
type way int

const (
	neither way = iota
	fromPrimary
	toPrimary
)

// plan is what a cutter does to the connections that come.
type plan struct {
	way  way
	most int64         // so many bytes pass
	cut  chan struct{} // closed when a connection was cut
	once sync.Once
}

// cutter leads to a node from two ports, so that a replica that is told to follow the other one
// connects at once. It closes connections after so many bytes.
type cutter struct {
	node  string
	ports [2]string
	next  int // the port that the replica is to follow

	mu    sync.Mutex // guards what follows
	plan  *plan
	conns map[net.Conn]struct{}
	ended bool
}

// newCutter starts one, for as long as the test runs.
func newCutter(t *testing.T, node string) *cutter {
	t.Helper()
	c := &cutter{node: node, plan: &plan{}, conns: map[net.Conn]struct{}{}}
	var work sync.WaitGroup
	var listeners []net.Listener
	for i := range c.ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		listeners = append(listeners, l)
		_, c.ports[i], err = net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		work.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				work.Go(func() { c.lead(conn) })
			}
		})
	}
	t.Cleanup(func() {
		for _, l := range listeners {
			_ = l.Close()
		}
		c.mu.Lock()
		c.ended = true
		for conn := range c.conns {
			_ = conn.Close()
		}
		c.mu.Unlock()
		work.Wait()
	})
	return c
}

// keep has the end of the test close a connection, unless it has ended.
func (c *cutter) keep(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		_ = conn.Close()
		return false
	}
	c.conns[conn] = struct{}{}
	return true
}

// lead leads one connection to the node.
func (c *cutter) lead(conn net.Conn) {
	far, err := net.Dial("tcp", c.node)
	if err != nil {
		_ = conn.Close()
		return
	}
	c.mu.Lock()
	p := c.plan
	c.mu.Unlock()
	if !c.keep(conn) || !c.keep(far) {
		_ = conn.Close()
		_ = far.Close()
		return
	}
	var both sync.WaitGroup
	pass := func(dst, src net.Conn, w way) {
		if p.way != w {
			_, _ = io.Copy(dst, src)
		} else if n, _ := io.CopyN(dst, src, p.most); n == p.most {
			p.once.Do(func() { close(p.cut) })
		}
		_ = conn.Close()
		_ = far.Close()
	}
	both.Go(func() { pass(conn, far, fromPrimary) })
	both.Go(func() { pass(far, conn, toPrimary) })
	both.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
	delete(c.conns, far)
}

// follow has a replica connect, and its links cut after so many bytes. It returns when one is.
func (c *cutter) follow(t *testing.T, replica *storetest.Node, w way, most int64) {
	t.Helper()
	p := &plan{way: w, most: most, cut: make(chan struct{})}
	c.mu.Lock()
	c.plan = p
	c.mu.Unlock()
	c.next = 1 - c.next
	replica.Do("REPLICAOF", "127.0.0.1", c.ports[c.next])
	if w == neither {
		return
	}
	select {
	case <-p.cut:
	case <-time.After(storetest.Patience):
		require.FailNow(t, "no link was cut", "after %d bytes", most)
	}
}

// TestLinksAreCutAtEachByte cuts the link between a primary and its replica after each number of
// bytes that either has sent: of a full sync, of a stream, and of acknowledgements. The replica
// serves the state of before or none, goes on where it was, and in the end both have the same.
func TestLinksAreCutAtEachByte(t *testing.T) {
	skipShort(t)
	e := storetest.Cellserver(t, storetest.Engine{})
	dirs := [2]string{t.TempDir(), t.TempDir()}
	primary := e.Single(t, storetest.Options{Args: []string{"--dir", dirs[0]}})
	replica := e.Single(t, storetest.Options{Args: []string{"--dir", dirs[1]}})
	c := newCutter(t, primary.Addr)
	before := startChurn(t, primary, 2, linkKeys, 100)
	before.awaitMade(t, 10_000)
	require.NoError(t, before.end())
	primary.Do("SET", "whose", "the primary's")
	replica.Do("SET", "whose", "its own")

	for _, n := range cutAfter() {
		c.follow(t, replica, fromPrimary, n)
		if whose, err := replica.Client.Get(context.Background(), "whose").Result(); err != nil || whose != "its own" {
			require.ErrorContains(t, err, "LOADING", "after %d bytes it serves %q", n, whose)
		}
	}
	c.follow(t, replica, neither, 0)
	l := &link{t: t, primary: primary, replica: replica}
	l.awaitCaughtUp()

	full, partial := l.full(), l.partial()
	during := startChurn(t, primary, 2, linkKeys, 100)
	for _, w := range []way{fromPrimary, toPrimary} {
		for _, n := range cutAfter() {
			c.follow(t, replica, w, n)
			whose, err := replica.Client.Get(context.Background(), "whose").Result()
			require.NoError(t, err, "after %d bytes", n)
			require.Equal(t, "the primary's", whose)
		}
	}
	require.NoError(t, during.end())
	c.follow(t, replica, neither, 0)
	l.awaitCaughtUp()
	t.Logf("%d cuts each of a full sync, a stream and acknowledgements: then %d full and %d partial syncs", len(cutAfter()), l.full()-full, l.partial()-partial)
	require.Equal(t, full, l.full(), "the backlog had everything")
	require.Greater(t, l.partial()-partial, int64(len(cutAfter())), "links were cut")
	has := stored(t, primary, dirs[0])
	require.Greater(t, len(has), linkKeys)
	requireSame(t, has, stored(t, replica, dirs[1]))
	for _, n := range []*storetest.Node{primary, replica} {
		require.True(t, n.Alive())
	}
}

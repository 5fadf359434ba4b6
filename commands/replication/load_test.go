package replication_test

import (
	"bufio"
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// counters are clients that count while roles change. Each has its own key.
type counters struct {
	primary atomic.Pointer[inproc.Node] // the server that they call
	w       *inproc.World
	host    string
	stop    atomic.Bool
	work    sync.WaitGroup
	each    []*counter
}

// counter is one of these clients. Its fields are read when all have ended.
type counter struct {
	key            string
	acked, unknown int64
	others         int64
}

// count starts n clients, on a host with a network delay to all nodes.
func count(w *inproc.World, n int, primary *inproc.Node, others ...*inproc.Node) *counters {
	all := &counters{w: w, host: w.Host()}
	for _, node := range append(others, primary) { // without a delay, no time would pass in calls
		for _, link := range [][2]string{{all.host, node.Host}, {node.Host, all.host}} {
			w.Net.Delay(link[0], link[1], func() time.Duration { return 400 * time.Microsecond })
		}
	}
	all.primary.Store(primary)
	for i := range n {
		c := &counter{key: "counter-" + strconv.Itoa(i)}
		all.each = append(all.each, c)
		all.work.Go(func() { all.run(c) })
	}
	return all
}

// end stops the clients.
func (all *counters) end() {
	all.stop.Store(true)
	all.work.Wait()
}

// run calls until end.
func (all *counters) run(c *counter) {
	for ; !all.stop.Load(); time.Sleep(time.Millisecond) {
		all.session(c)
	}
}

// session calls over one connection until it fails or the server is no longer the primary.
func (all *counters) session(c *counter) {
	conn, err := all.w.Dialer(all.host)(context.Background(), "tcp", all.primary.Load().Addr())
	if err != nil {
		return
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for n := 0; !all.stop.Load(); n++ {
		words := []string{"INCR", c.key}
		if n%3 == 2 {
			words = []string{"CL.THROTTLE", "limit-" + strconv.Itoa(n%50), "15", "30", "3600"}
		}
		_ = conn.SetDeadline(time.Now().Add(inproc.Patience))
		_, err := conn.Write(inproc.Encode(nil, words...))
		reply := ""
		if err == nil {
			reply, err = inproc.ReadReply(r)
		}
		switch {
		case words[0] != "INCR":
			c.others++
		case err != nil:
			c.unknown++
		case reply[0] == ':':
			c.acked++
		case strings.HasPrefix(reply, "-NOREPLICAS Not enough replicas have acknowledged"):
			c.unknown++
		}
		if err != nil || strings.HasPrefix(reply, "-READONLY") {
			return
		}
	}
}

// check compares the counts on f with those that the clients may expect.
func (all *counters) check(t testing.TB, f *inproc.Node) (acked, unknown int64) {
	t.Helper()
	c := f.Dial()
	for _, each := range all.each {
		text := strings.Split(c.Do("GET", each.key), "\r\n")[1]
		is, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, is, each.acked, "%s: something is lost", each.key)
		require.LessOrEqual(t, is, each.acked+each.unknown, "%s: something ran twice", each.key)
		acked, unknown = acked+each.acked, unknown+each.unknown
	}
	return acked, unknown
}

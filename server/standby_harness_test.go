package server_test

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/keyspace/entry"
)

// startStandby runs a server with the clock of the system, as one that replicates needs it.
func startStandby(t testing.TB, kind string, flags ...string) *fixture {
	t.Helper()
	c, err := config.Load(append([]string{"--transport", kind, "--io-threads", "2", "--dir", t.TempDir()}, flags...), nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := launchAt(t, c, l, nil, nil, func() {})
	eventually(t, "loaded", func() bool { return !f.Engine().Loading() })
	return f
}

// place is the host and the port of a server.
func (f *fixture) place() (host, port string) {
	host, port, err := net.SplitHostPort(f.addr)
	require.NoError(f.t, err)
	return host, port
}

// follows makes f a replica of primary, and returns when it has the state.
func (f *fixture) follows(primary *fixture) {
	f.t.Helper()
	host, port := primary.place()
	c := f.dial()
	defer c.Close()
	require.Contains(f.t, c.do("REPLICAOF", host, port), "+OK")
	f.awaitLink(primary)
}

// awaitLink returns when f is a replica of primary that has its state.
func (f *fixture) awaitLink(primary *fixture) {
	f.t.Helper()
	_, port := primary.place()
	eventually(f.t, "the link is up", func() bool {
		i := f.replication()
		return i["master_port"] == port && i["master_link_status"] == "up"
	})
}

// replication has the fields of INFO replication.
func (f *fixture) replication() map[string]string {
	f.t.Helper()
	c := f.dial()
	defer c.Close()
	fields := map[string]string{}
	for line := range strings.SplitSeq(c.do("INFO", "replication"), "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// state has all keys of a server, and what they hold.
func (f *fixture) state() map[string]string {
	f.t.Helper()
	all := map[string]string{}
	require.NoError(f.t, f.Keyspace().Snapshot(func(db int, key []byte, e entry.Entry) {
		all[fmt.Sprintf("%d/%s", db, key)] = fmt.Sprintf("%d %d %x", e.Kind, e.Expiry, e.Value)
	}, func() error { return nil }))
	return all
}

// agree waits until all servers are at the same offset, and compares what they hold.
func agree(t testing.TB, primary *fixture, replicas ...*fixture) {
	t.Helper()
	for _, r := range replicas {
		eventually(t, "the replica has everything", func() bool {
			is, has := primary.replication(), r.replication()
			return is["master_replid"] == has["master_replid"] && is["master_repl_offset"] == has["slave_repl_offset"]
		})
		require.Equal(t, primary.state(), r.state())
	}
}

// counters are clients that count while roles change. Each has a key of its own.
type counters struct {
	primary atomic.Pointer[fixture] // whom they call
	stop    atomic.Bool
	work    sync.WaitGroup
	each    []*counter
}

// counter is one of them. Its fields are read when all have ended.
type counter struct {
	key            string
	acked, unknown int64
	others         int64
}

// count starts so many.
func count(t *testing.T, n int, primary *fixture) *counters {
	t.Helper()
	all := &counters{}
	all.primary.Store(primary)
	for i := range n {
		c := &counter{key: "counter-" + strconv.Itoa(i)}
		all.each = append(all.each, c)
		all.work.Go(func() { all.run(c) })
	}
	t.Cleanup(all.end)
	return all
}

// end ends them.
func (all *counters) end() {
	all.stop.Store(true)
	all.work.Wait()
}

// run calls until the end.
func (all *counters) run(c *counter) {
	for !all.stop.Load() {
		conn, err := net.Dial("tcp", all.primary.Load().addr)
		if err != nil {
			continue
		}
		all.session(c, conn)
		_ = conn.Close()
	}
}

// session calls over one connection until it fails or the server is not the primary any more.
func (all *counters) session(c *counter, conn net.Conn) {
	r := bufio.NewReader(conn)
	for n := 0; !all.stop.Load(); n++ {
		_ = conn.SetDeadline(time.Now().Add(patience))
		words := []string{"INCR", c.key}
		if n%3 == 2 {
			words = []string{"CL.THROTTLE", "limit-" + strconv.Itoa(n%50), "15", "30", "3600"}
		}
		_, err := conn.Write(frame(words...))
		reply := ""
		if err == nil {
			reply, err = readReply(r)
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

// check wants every count on f to be one that its client may expect.
func (all *counters) check(t testing.TB, f *fixture) (acked, unknown int64) {
	t.Helper()
	c := f.dial()
	for _, each := range all.each {
		text := strings.Split(c.do("GET", each.key), "\r\n")[1]
		is, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, is, each.acked, "%s: something is lost", each.key)
		require.LessOrEqual(t, is, each.acked+each.unknown, "%s: something ran twice", each.key)
		acked, unknown = acked+each.acked, unknown+each.unknown
	}
	return acked, unknown
}

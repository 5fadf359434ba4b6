package server_test

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/transport"
)

// quietPeer is the transport's end of a connection that nobody listens to.
type quietPeer struct{}

func (quietPeer) Wake()                 {}
func (quietPeer) Abort()                {}
func (quietPeer) Held() (in, out int64) { return 0, 0 }
func (quietPeer) RemoteAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (quietPeer) LocalAddr() net.Addr   { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }

// bench is a session of an in-process server without sockets.
type bench struct {
	engine  *session.Engine
	session transport.Session
	worker  transport.Worker
	out     []byte
}

func newBench(tb testing.TB) *bench {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, l.Close()) })
	s, err := server.New(config.Default(), server.Options{Listeners: []net.Listener{l}})
	require.NoError(tb, err)
	return (&bench{engine: s.Engine()}).another()
}

// another opens a further session of the same server.
func (b *bench) another() *bench {
	session, _ := b.engine.Open(quietPeer{})
	return &bench{engine: b.engine, session: session, worker: b.engine.NewWorker(), out: make([]byte, 0, 1<<16)}
}

// feed runs a packet and returns the replies.
func (b *bench) feed(packet []byte) []byte {
	turn := b.session.Feed(b.worker, packet, b.out[:0])
	b.out = turn.Out
	return turn.Whole()
}

// frame encodes a command as clients send it.
func frame(args ...string) []byte {
	f := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		f = fmt.Appendf(f, "$%d\r\n%s\r\n", len(a), a)
	}
	return f
}

const (
	okReply     = "+OK\r\n"
	queuedReply = "+QUEUED\r\n"
	oom         = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
	endless     = "while true do end"
)

// listed returns a number that CLIENT LIST says of the client of that name.
func (c *client) listed(name, field string) int64 {
	c.t.Helper()
	for line := range strings.Lines(c.do("CLIENT", "LIST")) {
		if !strings.Contains(line, " name="+name+" ") {
			continue
		}
		found := regexp.MustCompile(` ` + field + `=(-?\d+) `).FindStringSubmatch(line)
		require.NotNil(c.t, found, "%s in %s", field, line)
		n, err := strconv.ParseInt(found[1], 10, 64)
		require.NoError(c.t, err)
		return n
	}
	c.t.Fatalf("no client %q", name)
	return 0
}

// infoNumber is info of a field that is a number.
func (c *client) infoNumber(field string) int64 {
	c.t.Helper()
	n, err := strconv.ParseInt(c.info(field), 10, 64)
	require.NoError(c.t, err)
	return n
}

// bulkText is the content of a bulk or verbatim reply.
func bulkText(t *testing.T, reply string) string {
	t.Helper()
	_, text, ok := strings.Cut(reply, "\r\n")
	require.True(t, ok)
	if reply[0] == '=' {
		require.True(t, strings.HasPrefix(text, "txt:"))
		text = text[4:]
	}
	return strings.TrimSuffix(text, "\r\n")
}

// awaits wants n clients to wait for elements.
func (f *fixture) awaits(admin *client, n int) {
	f.t.Helper()
	eventually(f.t, "they wait", func() bool { return admin.info("blocked_clients") == fmt.Sprint(n) })
}

// runsAlone waits until a script has everything to itself.
func (f *fixture) runsAlone() {
	f.t.Helper()
	eventually(f.t, "a script to run", func() bool { return f.clock.Timers() == 1 })
}

// fullFS is a disk that has no room while it is full.
type fullFS struct {
	persistence.OS
	full atomic.Bool
}

type fullFile struct {
	persistence.File
	fs *fullFS
}

// Create implements persistence.FS.
func (d *fullFS) Create(name string) (persistence.File, error) {
	f, err := d.OS.Create(name)
	return fullFile{f, d}, err
}

// Write implements persistence.File.
func (f fullFile) Write(b []byte) (int, error) {
	if f.fs.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(b)
}

// startFull starts a server whose disk has no room left since it has kept k.
func startFull(t *testing.T, kind, dir string) (*fixture, *client, *fullFS) {
	t.Helper()
	disk := &fullFS{}
	f := startOnDisk(t, kind, disk, func() {}, "--dir", dir, "--appendonly", "yes")
	c := f.dial()
	require.Equal(t, "+OK\r\n", c.do("SET", "k", "1"))
	disk.full.Store(true)
	return f, c, disk
}

package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/server"
)

// epoch is where the stepped clock of a fixture starts.
const epoch = limit.Instant(1_700_000_000 * int64(time.Second))

// patience bounds every wait for something that must happen: it decides nothing but
// how long a broken test takes to fail.
const patience = time.Minute

// transports are the kinds that every test over sockets runs on.
func transports() []string {
	if runtime.GOOS == "linux" {
		return []string{"goroutine", "epoll"}
	}
	return []string{"goroutine"}
}

// eachTransport runs f over every kind of transport.
func eachTransport(t *testing.T, f func(t *testing.T, kind string)) {
	t.Helper()
	for _, kind := range transports() {
		t.Run(kind, func(t *testing.T) { f(t, kind) })
	}
}

// fixture is a server of this process that listens on a port of loopback, with a
// clock that stands still.
type fixture struct {
	*server.Server
	t     testing.TB
	clock *clocktest.Clock
	log   *logBuffer
	addr  string
	done  chan error
	ended sync.Once
}

// start runs a server with the given options, as on its command line, until the
// test ends.
func start(t testing.TB, kind string, flags ...string) *fixture {
	t.Helper()
	c, err := config.Load(append([]string{"--transport", kind, "--io-threads", "2", "--dir", t.TempDir()}, flags...), nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return startOn(t, c, l)
}

// startOnDisk is start on a disk of the caller's. It does not wait for what is to be
// loaded.
func startOnDisk(t testing.TB, kind string, disk persistence.FS, made func(), flags ...string) *fixture {
	t.Helper()
	c, err := config.Load(append([]string{"--transport", kind, "--io-threads", "2"}, flags...), nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return launch(t, c, l, disk, made)
}

// startOn is start with a configuration and a listener of the caller's. What there
// is to be loaded has been when it returns.
func startOn(t testing.TB, c *config.Config, l net.Listener) *fixture {
	t.Helper()
	f := launch(t, c, l, nil, func() {})
	eventually(t, "loaded", func() bool { return !f.Engine().Loading() })
	return f
}

// launch is startOn on a disk of the caller's, and does not wait; made is called once
// the server is there and before it runs.
func launch(t testing.TB, c *config.Config, l net.Listener, disk persistence.FS, made func()) *fixture {
	t.Helper()
	return launchAt(t, c, l, disk, clocktest.New(epoch), made)
}

// launchAt is launch with a clock of the caller's; nil is the system's.
func launchAt(t testing.TB, c *config.Config, l net.Listener, disk persistence.FS, clock *clocktest.Clock, made func()) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: clock, log: &logBuffer{}, addr: l.Addr().String(), done: make(chan error, 1)}
	o := server.Options{
		Log:       slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Listeners: []net.Listener{l},
		FS:        disk,
	}
	if clock != nil {
		o.Clock = clock
	}
	var err error
	f.Server, err = server.New(c, o)
	require.NoError(t, err)
	made()
	go func() { f.done <- f.Run(context.Background()) }()
	t.Cleanup(f.end)
	return f
}

// end stops the server and waits until Run has returned.
func (f *fixture) end() {
	f.ended.Do(func() {
		f.Stop()
		select {
		case err := <-f.done:
			require.NoError(f.t, err)
		case <-time.After(patience):
			buf := make([]byte, 1<<20)
			f.t.Fatalf("the server does not stop:\n%s", buf[:runtime.Stack(buf, true)])
		}
	})
}

// logBuffer collects a log that several goroutines write.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// client is a raw connection: what it compares are bytes.
type client struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func (f *fixture) dial() *client {
	f.t.Helper()
	return dial(f.t, "tcp", f.addr)
}

func dial(t testing.TB, network, addr string) *client {
	t.Helper()
	conn, err := net.Dial(network, addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return &client{Conn: conn, t: t, r: bufio.NewReader(conn)}
}

// send writes bytes as they are, and begins the client's patience anew: how much it
// says in all is no matter.
func (c *client) send(raw string) {
	c.t.Helper()
	require.NoError(c.t, c.SetDeadline(time.Now().Add(patience)))
	_, err := io.WriteString(c.Conn, raw)
	require.NoError(c.t, err)
}

// command sends one command and reads nothing.
func (c *client) command(args ...string) {
	c.t.Helper()
	c.send(string(frame(args...)))
}

// do sends one command and returns the bytes of its reply.
func (c *client) do(args ...string) string {
	c.t.Helper()
	c.command(args...)
	return c.reply()
}

// reply returns the bytes of the next reply.
func (c *client) reply() string {
	c.t.Helper()
	if c.r.Buffered() == 0 {
		require.NoError(c.t, c.SetReadDeadline(time.Now().Add(patience)))
	}
	text, err := readReply(c.r)
	require.NoError(c.t, err, "after %q", text)
	return text
}

// expect reads as many replies as there are in want and compares them.
func (c *client) expect(want ...string) {
	c.t.Helper()
	for i, w := range want {
		require.Equal(c.t, w, c.reply(), "reply %d", i)
	}
}

// expectEnd wants the server to have closed the connection with no further byte.
func (c *client) expectEnd() {
	c.t.Helper()
	rest, err := io.ReadAll(c.r)
	if err != nil {
		var timeout net.Error
		require.False(c.t, errors.As(err, &timeout) && timeout.Timeout(), "the connection is still open")
	}
	require.Empty(c.t, string(rest))
}

// info returns the value of a field of INFO.
func (c *client) info(field string) string {
	c.t.Helper()
	for _, line := range strings.Split(c.do("INFO", "everything"), "\r\n") {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return value
		}
	}
	c.t.Fatalf("INFO has no field %s", field)
	return ""
}

// id is what CLIENT ID says.
func (c *client) id() string {
	c.t.Helper()
	return strings.Trim(c.do("CLIENT", "ID"), ":\r\n")
}

// readReply reads one reply of either protocol, nested ones whole, and returns its
// bytes.
func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return line, err
	}
	if !strings.HasSuffix(line, "\r\n") || len(line) < 3 {
		return line, fmt.Errorf("bad line %q", line)
	}
	n, _ := strconv.Atoi(line[1 : len(line)-2])
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return line, nil
		}
		body := make([]byte, n+2)
		_, err := io.ReadFull(r, body)
		return line + string(body), err
	case '%':
		n *= 2
	case '*', '~', '>':
	default:
		return line, nil
	}
	text := strings.Builder{}
	text.WriteString(line)
	for range n {
		one, err := readReply(r)
		text.WriteString(one)
		if err != nil {
			return text.String(), err
		}
	}
	return text.String(), nil
}

// leftBehind waits until no goroutine is left but those that before knows: the last
// ones may need a moment to end, on a busy machine a long one.
func leftBehind(t testing.TB, before goleak.Option) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if err = goleak.Find(before); err == nil {
			return
		}
	}
	require.NoError(t, err)
}

// eventually waits until ok says so.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, patience, time.Millisecond, what)
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// array encodes an array of replies that are encoded already.
func array(replies ...string) string {
	return fmt.Sprintf("*%d\r\n%s", len(replies), strings.Join(replies, ""))
}

// five encodes the reply of a limiter.
func five(a, b, c, d, e int64) string {
	return fmt.Sprintf("*5\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n", a, b, c, d, e)
}

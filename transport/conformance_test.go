package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cellserver/cellserver/transport"
)

// patience bounds everything that is waited for; nothing takes nearly as long.
const patience = 2 * time.Minute

// factory makes one kind of transport.
type factory func(h transport.Handler, lim transport.Limits) transport.Transport

// conformance is what every transport has to pass, by name.
var conformance = []struct {
	name string
	test func(t *testing.T, f factory)
}{
	{"replies come in order over TCP", testEcho},
	{"replies come in order over a unix socket", testUnixSocket},
	{"a drip of single bytes", testDrip},
	{"any split of the input means the same", testSplits},
	{"a deep pipeline", testDeepPipeline},
	{"a command of a megabyte", testLargeCommand},
	{"input without an end is cut off", testEndlessInput},
	{"input that is kept is counted", testUnread},
	{"half-close is answered, then closed", testHalfClose},
	{"a reset in the middle of a command", testReset},
	{"Close delivers the last reply past unread input", testCloseDelivers},
	{"counters add up", testStats},
	{"addresses", testAddresses},
	{"a parked command keeps the order", testParkOrder},
	{"a parked session keeps input up to the backlog", testParkBacklog},
	{"a parked client that stops sending is answered", testParkHalfClose},
	{"a waiting client that hangs up is noticed", testWaitHangUp},
	{"a parked client that resets is noticed", testParkReset},
	{"a Wake during Feed leads to another", testWakeDuringFeed},
	{"a Wake before the first byte", testWakeBeforeFirstByte},
	{"wake storms lose nothing", testWakeStorm},
	{"abort while idle, parked and writing", testAbort},
	{"peers outlive their connection", testPeerAfterEnd},
	{"a barrier holds replies back", testBarrier},
	{"an abort reaches a held reply", testBarrierAbort},
	{"more is held back than a round keeps", testHeldMuch},
	{"what waited may be changed before it leaves", testSettle},
	{"bytes and what lies elsewhere come in order", testPieces},
	{"what lies elsewhere is released with its connection", testPiecesReleased},
	{"who takes much does not hold others up", testPiecesFair},
	{"slow readers cost bounded memory and are cut", testSlowReaders},
	{"a slow but steady reader is kept", testSteadyReader},
	{"who takes nothing of memory that others wait for is cut sooner", testPressed},
	{"a flood that is never read stops at the backlog", testFlood},
	{"one flood does not starve others", testFairness},
	{"limits reach live connections", testSetLimits},
	{"refusals are delivered and hold up nobody", testRefusal},
	{"connections come and go", testChurn},
	{"graceful stop finishes what it has begun", testShutdown},
	{"graceful stop waits for parked, not for waiting", testShutdownParked},
	{"graceful stop is cut short by its context", testShutdownCut},
	{"no Serve after Shutdown", testServeAfterShutdown},
	{"a listener closed by its owner", testListenerClosed},
}

// run holds one kind of transport to the guarantees of the package.
func run(t *testing.T, f factory) {
	for _, c := range conformance {
		t.Run(c.name, func(t *testing.T) { c.test(t, f) })
	}
}

func TestMain(m *testing.M) {
	if child() {
		return
	}
	code := m.Run()
	var left error
	for end := time.Now().Add(patience); code == 0 && time.Now().Before(end); {
		if left = goleak.Find(); left == nil {
			break // the last goroutines may need a moment to end, on a busy machine a long one
		}
	}
	if left != nil {
		fmt.Fprintln(os.Stderr, left)
		code = 1
	}
	os.Exit(code)
}

func TestGoroutineConformance(t *testing.T) { run(t, newGoroutine) }

func newGoroutine(h transport.Handler, lim transport.Limits) transport.Transport {
	return transport.NewGoroutine(h, lim, quiet)
}

var quiet = slog.New(slog.DiscardHandler)

// rig is a transport that serves the line protocol.
type rig struct {
	t      *testing.T
	h      *lineHandler
	tr     transport.Transport
	addr   net.Addr
	served chan error
}

// start serves h, on a loopback port, until the end of the test, which then checks
// that no guarantee was broken and no session forgotten.
func start(t *testing.T, f factory, h *lineHandler, lim transport.Limits) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return startOn(t, f, h, lim, l)
}

func startOn(t *testing.T, f factory, h *lineHandler, lim transport.Limits, l net.Listener) *rig {
	t.Helper()
	r := &rig{t: t, h: h, tr: f(h, lim), addr: l.Addr(), served: make(chan error, 1)}
	go func() { r.served <- r.tr.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, r.tr.Shutdown(ctx))
		require.NoError(t, <-r.served)
		require.Empty(t, h.breaches)
		require.Equal(t, h.opened.Load(), h.closed.Load())
		s := r.tr.Stats()
		require.Zero(t, s.Connections)
		require.Zero(t, s.Pending)
		require.Zero(t, s.Unread)
	})
	return r
}

// client is the far end of a connection.
type client struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func (r *rig) dial() *client {
	r.t.Helper()
	nc, err := net.Dial(r.addr.Network(), r.addr.String())
	require.NoError(r.t, err)
	require.NoError(r.t, nc.SetDeadline(time.Now().Add(patience)))
	r.t.Cleanup(func() { nc.Close() })
	return &client{t: r.t, Conn: nc, r: bufio.NewReader(nc)}
}

func (c *client) send(lines ...string) {
	c.t.Helper()
	_, err := io.WriteString(c, strings.Join(lines, "\n")+"\n")
	require.NoError(c.t, err)
}

func (c *client) expect(lines ...string) {
	c.t.Helper()
	for _, want := range lines {
		got, err := c.r.ReadString('\n')
		require.NoError(c.t, err)
		require.Equal(c.t, want+"\n", got)
	}
}

func (c *client) expectEnd() {
	c.t.Helper()
	rest, err := io.ReadAll(c.r)
	require.NoError(c.t, err)
	require.Empty(c.t, rest)
}

// eventually waits for something that has no event of its own.
func (r *rig) eventually(what func() bool) {
	r.t.Helper()
	require.Eventually(r.t, what, patience, time.Millisecond)
}

func (r *rig) session(i int) *lineSession {
	r.t.Helper()
	r.eventually(func() bool { return len(r.h.all()) > i })
	return r.h.all()[i]
}

func socketPath(t *testing.T) string { return filepath.Join(t.TempDir(), "s") }

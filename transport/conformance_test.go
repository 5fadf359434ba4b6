package transport_test

import (
	"bufio"
	"context"
	"crypto/tls"
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

// patience bounds everything that is waited for. It decides nothing but how long a broken test
// takes to fail.
const patience = 5 * time.Minute

// patientLimits are the default limits, but for those that would cut a client because the
// machine is slow.
func patientLimits() transport.Limits {
	lim := transport.DefaultLimits()
	lim.Linger, lim.Handshake = patience, patience
	return lim
}

// factory makes one kind of transport. Its peers are slow by the clock, which stands still.
type factory func(h transport.Handler, lim transport.Limits, clock *transport.Clock) transport.Transport

// conformance is what every transport has to pass, by name.
var conformance = []struct {
	name string
	test func(t *testing.T, f factory)
	// plain is about sockets without TLS. slow takes seconds, and is not repeated for each
	// version of TLS.
	plain, slow bool
}{
	{name: "replies come in order over TCP", test: testEcho},
	{name: "replies come in order over a unix socket", test: testUnixSocket},
	{name: "a drip of single bytes", test: testDrip},
	{name: "any split of the input means the same", test: testSplits},
	{name: "a deep pipeline", test: testDeepPipeline},
	{name: "a command of a megabyte", test: testLargeCommand},
	{name: "input without an end is cut off", test: testEndlessInput},
	{name: "input that is kept is counted", test: testUnread, plain: true},
	{name: "half-close is answered, then closed", test: testHalfClose},
	{name: "a reset in the middle of a command", test: testReset},
	{name: "Close delivers the last reply past unread input", test: testCloseDelivers},
	{name: "counters add up", test: testStats},
	{name: "a retired listener is closed, and its connections stay", test: testRetire},
	{name: "addresses", test: testAddresses},
	{name: "a parked command keeps the order", test: testParkOrder},
	{name: "a parked session keeps input up to the backlog", test: testParkBacklog},
	{name: "a parked client that stops sending is answered", test: testParkHalfClose},
	{name: "a waiting client that hangs up is noticed", test: testWaitHangUp},
	{name: "a parked client that resets is noticed", test: testParkReset},
	{name: "a Wake during Feed leads to another", test: testWakeDuringFeed},
	{name: "a Wake before the first byte", test: testWakeBeforeFirstByte},
	{name: "wake storms lose nothing", test: testWakeStorm, slow: true},
	{name: "abort while idle, parked and writing", test: testAbort},
	{name: "peers outlive their connection", test: testPeerAfterEnd},
	{name: "a barrier holds replies back", test: testBarrier},
	{name: "an abort reaches a held reply", test: testBarrierAbort},
	{name: "more is held back than a round keeps", test: testHeldMuch},
	{name: "what waited may be changed before it leaves", test: testSettle},
	{name: "bytes and what lies elsewhere come in order", test: testPieces, slow: true},
	{name: "what lies elsewhere is released with its connection", test: testPiecesReleased},
	{name: "who takes much does not hold others up", test: testPiecesFair, slow: true},
	{name: "slow readers cost bounded memory and are cut", test: testSlowReaders, slow: true},
	{name: "a slow but steady reader is kept", test: testSteadyReader, slow: true},
	{name: "who takes nothing of memory that others wait for is cut sooner", test: testPressed, slow: true},
	{name: "a flood that is never read stops at the backlog", test: testFlood, slow: true},
	{name: "one flood does not starve others", test: testFairness, slow: true},
	{name: "limits reach live connections", test: testSetLimits},
	{name: "refusals are delivered and hold up nobody", test: testRefusal, plain: true},
	{name: "connections come and go", test: testChurn, slow: true},
	{name: "graceful stop finishes what it has begun", test: testShutdown},
	{name: "graceful stop waits for parked, not for waiting", test: testShutdownParked},
	{name: "graceful stop is cut short by its context", test: testShutdownCut},
	{name: "no Serve after Shutdown", test: testServeAfterShutdown},
	{name: "a listener closed by its owner", test: testListenerClosed},
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

func newGoroutine(h transport.Handler, lim transport.Limits, clock *transport.Clock) transport.Transport {
	return transport.NewGoroutineAt(h, lim, quiet, clock)
}

var quiet = slog.New(slog.DiscardHandler)

// rig is a transport that serves the line protocol.
type rig struct {
	t      *testing.T
	h      *lineHandler
	lim    transport.Limits
	clock  *transport.Clock
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
	r := &rig{t: t, h: h, lim: lim, clock: transport.NewClock(), addr: l.Addr(), served: make(chan error, 1)}
	r.tr = f(h, lim, r.clock)
	go func() { r.served <- r.tr.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, <-r.stop(ctx))
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
	nc, err := dial(r.tr, r.addr)
	require.NoError(r.t, err)
	require.NoError(r.t, nc.SetDeadline(time.Now().Add(patience)))
	r.t.Cleanup(func() { nc.Close() })
	return &client{t: r.t, Conn: nc, r: bufio.NewReader(nc)}
}

// dial connects to addr, with TLS if tr serves that.
func dial(tr transport.Transport, addr net.Addr) (net.Conn, error) {
	nc, err := net.Dial(addr.Network(), addr.String())
	if over, ok := tr.(*overTLS); ok && err == nil {
		return tls.Client(nc, over.client), nil
	}
	return nc, err
}

// tcp returns the connection without TLS.
func (c *client) tcp() *net.TCPConn {
	if over, ok := c.Conn.(*tls.Conn); ok {
		return over.NetConn().(*net.TCPConn)
	}
	return c.Conn.(*net.TCPConn)
}

// closeWrite says that the client sends no more.
func (c *client) closeWrite() error {
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite()
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

// eventually waits for what a transport counts, which is no event.
func (r *rig) eventually(what func() bool) {
	r.t.Helper()
	require.Eventually(r.t, what, patience, time.Millisecond)
}

// await waits for what the handler is told.
func (r *rig) await(what func() bool) {
	r.t.Helper()
	require.True(r.t, r.h.await(what), "it never happens")
}

// pass lets time pass for peers that are slow.
func (r *rig) pass(d time.Duration) { transport.Pass(bare(r.tr), r.clock, r.lim, d) }

// bare returns what is below TLS.
func bare(tr transport.Transport) transport.Transport {
	if over, ok := tr.(*overTLS); ok {
		return over.Transport
	}
	return tr
}

// stop begins a Shutdown and returns what it will say. Connections linger by the clock of the
// machine then.
func (r *rig) stop(ctx context.Context) <-chan error {
	r.clock.Run()
	done := make(chan error, 1)
	go func() { done <- r.tr.Shutdown(ctx) }()
	return done
}

func (r *rig) session(i int) *lineSession {
	r.t.Helper()
	r.await(func() bool { return len(r.h.all()) > i })
	return r.h.all()[i]
}

func socketPath(t *testing.T) string { return filepath.Join(t.TempDir(), "s") }

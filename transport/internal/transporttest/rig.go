// Package transporttest serves a line protocol with any transport, for tests. A [Rig] has a
// transport, and a [LineHandler] notes each violation of the guarantees of package transport.
package transporttest

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cellserver/cellserver/transport"
)

// Patience is the timeout of everything that tests wait for. It only determines how long a broken
// test takes to fail.
const Patience = 5 * time.Minute

// PatientLimits returns the default limits, except for those that would disconnect a client because
// the machine is slow.
func PatientLimits() transport.Limits {
	lim := transport.DefaultLimits()
	lim.Linger, lim.Handshake = Patience, Patience
	return lim
}

// Factory creates a transport of one kind that serves h. clock is the clock for its write timeout.
type Factory func(h transport.Handler, lim transport.Limits, clock *Clock) transport.Transport

// Quiet is a log that discards all lines.
var Quiet = slog.New(slog.DiscardHandler)

// Rig is a transport that serves the line protocol.
type Rig struct {
	T         *testing.T
	Handler   *LineHandler
	Limits    transport.Limits
	clock     *Clock
	Transport transport.Transport
	Addr      net.Addr
	served    chan error
}

// Start serves h on a loopback port until the end of the test. Then it checks that no guarantee was
// violated and every session was closed.
func Start(t *testing.T, f Factory, h *LineHandler, lim transport.Limits) *Rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return StartOn(t, f, h, lim, l)
}

// StartOn does what Start does, on the given listener.
func StartOn(t *testing.T, f Factory, h *LineHandler, lim transport.Limits, l net.Listener) *Rig {
	t.Helper()
	r := &Rig{T: t, Handler: h, Limits: lim, clock: NewClock(), Addr: l.Addr(), served: make(chan error, 1)}
	r.Transport = f(h, lim, r.clock)
	go func() { r.served <- r.Transport.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		require.NoError(t, <-r.Stop(ctx))
		require.NoError(t, <-r.served)
		require.Empty(t, h.Breaches)
		require.Equal(t, h.Opened.Load(), h.Closed.Load())
		s := r.Transport.Stats()
		require.Zero(t, s.Connections)
		require.Zero(t, s.Pending)
		require.Zero(t, s.Unread)
	})
	return r
}

// Client is the client's end of a connection.
type Client struct {
	T testing.TB
	net.Conn
	Reader *bufio.Reader
}

// Dial connects a client, with TLS if the transport serves that.
func (r *Rig) Dial() *Client {
	r.T.Helper()
	nc, err := Dial(r.Transport, r.Addr)
	require.NoError(r.T, err)
	require.NoError(r.T, nc.SetDeadline(time.Now().Add(Patience)))
	r.T.Cleanup(func() { nc.Close() })
	return &Client{T: r.T, Conn: nc, Reader: bufio.NewReader(nc)}
}

// Dial connects to addr, with TLS if tr serves that.
func Dial(tr transport.Transport, addr net.Addr) (net.Conn, error) {
	nc, err := net.Dial(addr.Network(), addr.String())
	if over, ok := tr.(*OverTLS); ok && err == nil {
		return tls.Client(nc, over.ClientConfig), nil
	}
	return nc, err
}

// TCP returns the connection without TLS.
func (c *Client) TCP() *net.TCPConn {
	if over, ok := c.Conn.(*tls.Conn); ok {
		return over.NetConn().(*net.TCPConn)
	}
	return c.Conn.(*net.TCPConn)
}

// CloseWrite closes the sending side of the connection.
func (c *Client) CloseWrite() error {
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite()
}

// Send sends lines to the server, each with its end of line.
func (c *Client) Send(lines ...string) {
	c.T.Helper()
	_, err := io.WriteString(c, strings.Join(lines, "\n")+"\n")
	require.NoError(c.T, err)
}

// Expect reads as many lines as lines has, and requires them to be equal.
func (c *Client) Expect(lines ...string) {
	c.T.Helper()
	for _, want := range lines {
		got, err := c.Reader.ReadString('\n')
		require.NoError(c.T, err)
		require.Equal(c.T, want+"\n", got)
	}
}

// ExpectEnd reads to the end of the connection, and fails the test if bytes arrive before it.
func (c *Client) ExpectEnd() {
	c.T.Helper()
	rest, err := io.ReadAll(c.Reader)
	require.NoError(c.T, err)
	require.Empty(c.T, rest)
}

// Eventually polls until what returns true. It is for counters of a transport, whose changes are no
// events.
func (r *Rig) Eventually(what func() bool) {
	r.T.Helper()
	require.Eventually(r.T, what, Patience, time.Millisecond)
}

// Await waits until what returns true, and fails the test if that does not happen. It calls what
// after each event of the handler.
func (r *Rig) Await(what func() bool) {
	r.T.Helper()
	require.True(r.T, r.Handler.await(what), "it never happens")
}

// Pass makes d pass for the write timeout.
func (r *Rig) Pass(d time.Duration) { Pass(Bare(r.Transport), r.clock, r.Limits, d) }

// Bare returns the transport to which tr adds TLS, or tr itself if it adds none.
func Bare(tr transport.Transport) transport.Transport {
	if over, ok := tr.(*OverTLS); ok {
		return over.Transport
	}
	return tr
}

// Stop begins a Shutdown and returns the channel for its result. From then on connections linger by
// the clock of the machine.
func (r *Rig) Stop(ctx context.Context) <-chan error {
	r.clock.Run()
	done := make(chan error, 1)
	go func() { done <- r.Transport.Shutdown(ctx) }()
	return done
}

// Session returns the session of the connection with this index, once it is open.
func (r *Rig) Session(i int) *LineSession {
	r.T.Helper()
	r.Await(func() bool { return len(r.Handler.Sessions()) > i })
	return r.Handler.Sessions()[i]
}

// RunTests runs the tests of a package and returns the exit status, which is 1 if they leave a
// goroutine behind.
func RunTests(m *testing.M) int {
	code := m.Run()
	var left error
	// The last goroutines may need some time to end, especially on a busy machine, so the search is repeated.
	for end := time.Now().Add(Patience); code == 0 && time.Now().Before(end); {
		if left = goleak.Find(); left == nil {
			break
		}
	}
	if left != nil {
		fmt.Fprintln(os.Stderr, left)
		return 1
	}
	return code
}

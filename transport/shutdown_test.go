package transport_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

func testShutdown(t *testing.T, f transporttest.Factory) {
	h := transporttest.NewLineHandler()
	// The first Feed is held until the stop has begun. So its whole batch, several turns long, is
	// in progress then.
	entered, stopping := make(chan bool), make(chan bool)
	var once atomic.Bool
	once.Store(true) // until the other client is served
	h.OnFeed = func(s *transporttest.LineSession) {
		if s.Left == nil && !once.Swap(true) {
			entered <- true
			<-stopping
		}
	}
	r := transporttest.Start(t, f, h, transporttest.PatientLimits())
	idle := r.Dial()
	idle.Send("echo abc") // with TLS, a client whose handshake is under way may be reset
	idle.Expect("abc")
	once.Store(false)
	busy := r.Dial()
	batch := strings.Repeat("echo abc\n", 6000)
	_, err := io.WriteString(busy, batch)
	require.NoError(t, err)
	<-entered
	done := r.Stop(context.Background())
	awaitRefusals(r)
	close(stopping)
	got, err := io.ReadAll(busy.Reader)
	require.NoError(t, err)
	idle.ExpectEnd()
	require.NoError(t, <-done)
	// A loop publishes its counters once it has ended.
	require.Equal(t, strings.Repeat("abc\n", int(r.Transport.Stats().BytesIn)/len("echo abc\n")-1), string(got))
	require.NotEmpty(t, got)
	require.NoError(t, r.Transport.Shutdown(context.Background()))
}

// awaitRefusals waits until no listener accepts connections.
func awaitRefusals(r *transporttest.Rig) {
	r.T.Helper()
	r.Eventually(func() bool {
		nc, err := net.Dial(r.Addr.Network(), r.Addr.String())
		if err == nil {
			nc.Close()
		}
		return err != nil
	})
}

// nudgedListener accepts connections that a stop reaches in the middle of a read: see nudgedConn.
type nudgedListener struct {
	net.Listener
	stop chan<- bool
}

func (l nudgedListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &nudgedConn{TCPConn: nc.(*net.TCPConn), stop: l.stop, nudged: make(chan bool, 1)}, nil
}

// nudgedConn is a connection whose first read after CloseWrite returns only once another goroutine
// has given it a deadline in the past, as a stop does.
type nudgedConn struct {
	*net.TCPConn
	stop    chan<- bool // gets a value when the stop should begin
	nudged  chan bool
	closing atomic.Bool
}

func (c *nudgedConn) CloseWrite() error {
	c.closing.Store(true)
	return c.TCPConn.CloseWrite()
}

func (c *nudgedConn) SetReadDeadline(t time.Time) error {
	if t.Unix() == 1 {
		c.nudged <- true
	}
	return c.TCPConn.SetReadDeadline(t)
}

func (c *nudgedConn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 && c.closing.Swap(false) {
		c.stop <- true
		<-c.nudged
	}
	return n, err
}

// TestStopDuringLinger: a stop that reaches a connection while it discards input of its client ends
// the connection, although the client neither sends more nor closes.
func TestStopDuringLinger(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h, entered, stopping := transporttest.NewLineHandler(), make(chan bool), make(chan bool)
	h.OnFeed = func(*transporttest.LineSession) {
		entered <- true
		<-stopping
	}
	lingers := make(chan bool)
	r := transporttest.StartOn(t, newGoroutine, h, transporttest.PatientLimits(), nudgedListener{l, lingers})
	c := r.Dial()
	_, err = io.WriteString(c, "bye\n"+strings.Repeat("echo abc\n", 20_000))
	require.NoError(t, err)
	<-entered
	done := r.Stop(context.Background())
	awaitRefusals(r)
	close(stopping)
	<-lingers
	again := r.Stop(context.Background())
	require.NoError(t, <-done)
	require.NoError(t, <-again)
}

func testShutdownParked(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	parked, waiting, held := r.Dial(), r.Dial(), r.Dial()
	parked.Send("park a", "echo behind")
	waiting.Send("wait b")
	held.Send("sync 3")
	r.Await(func() bool { return r.Handler.IsParked("a") && r.Handler.IsParked("b") && r.Handler.Syncing() > 0 })
	done := r.Stop(context.Background())
	waiting.ExpectEnd()
	r.Handler.Finish("a", "A")
	parked.Expect("A", "behind")
	parked.ExpectEnd()
	r.Handler.Synced(3)
	held.Expect("synced 3")
	held.ExpectEnd()
	require.NoError(t, <-done)
}

func testShutdownCut(t *testing.T, f transporttest.Factory) {
	lim := transporttest.PatientLimits()
	lim.WriteTimeout = transporttest.Patience
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), lim)
	parked, slow := r.Dial(), r.Dial()
	parked.Send("park a")
	slow.Send("big 50000000")
	r.Eventually(func() bool { return r.Handler.IsParked("a") && r.Transport.Stats().Pending > 0 })
	ctx, cancel := context.WithCancel(context.Background())
	first := r.Stop(context.Background())
	second := r.Stop(ctx)
	awaitRefusals(r)
	r.Pass(0)
	for _, s := range r.Handler.Sessions()[:2] { // awaitRefusals may have opened further sessions
		require.False(t, s.Gone.Load(), "a parked command and an unsent reply are not dropped")
	}
	require.Empty(t, first)
	cancel()
	require.ErrorIs(t, <-second, context.Canceled)
	require.NoError(t, <-first)
	parked.ExpectEnd()
	r.Handler.Finish("a", "A")
}

func testServeAfterShutdown(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	c := r.Dial()
	r.Session(0)
	require.NoError(t, <-r.Stop(context.Background()))
	c.ExpectEnd()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.ErrorIs(t, r.Transport.Serve(l), transport.ErrClosed)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func testListenerClosed(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorIs(t, r.Transport.Serve(l), net.ErrClosed)
	c := r.Dial() // the other listener still accepts
	c.Send("echo 1")
	c.Expect("1")
}

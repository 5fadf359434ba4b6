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
)

func testShutdown(t *testing.T, f factory) {
	h := newLineHandler()
	// The first Feed is held until the stop has begun: its whole batch, several
	// turns of it, is in flight then.
	entered, stopping := make(chan bool), make(chan bool)
	var once atomic.Bool
	once.Store(true) // until the other client is served
	h.onFeed = func(s *lineSession) {
		if s.left == nil && !once.Swap(true) {
			entered <- true
			<-stopping
		}
	}
	r := start(t, f, h, patientLimits())
	idle := r.dial()
	idle.send("echo abc") // with TLS, a client whose handshake is under way may be reset
	idle.expect("abc")
	once.Store(false)
	busy := r.dial()
	batch := strings.Repeat("echo abc\n", 6000)
	_, err := io.WriteString(busy, batch)
	require.NoError(t, err)
	<-entered
	done := r.stop(context.Background())
	r.awaitRefusals()
	close(stopping)
	got, err := io.ReadAll(busy.r)
	require.NoError(t, err)
	idle.expectEnd()
	require.NoError(t, <-done)
	// A loop tells what it has received once it has ended.
	require.Equal(t, strings.Repeat("abc\n", int(r.tr.Stats().BytesIn)/len("echo abc\n")-1), string(got))
	require.NotEmpty(t, got)
	require.NoError(t, r.tr.Shutdown(context.Background()))
}

// awaitRefusals waits until no listener takes connections.
func (r *rig) awaitRefusals() {
	r.t.Helper()
	r.eventually(func() bool {
		nc, err := net.Dial(r.addr.Network(), r.addr.String())
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

// nudgedConn is a connection whose first read after CloseWrite returns something only once another
// goroutine has given that read a deadline in the past, as a stop does.
type nudgedConn struct {
	*net.TCPConn
	stop    chan<- bool // gets a value when the stop is to begin
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

// TestStopDuringLinger: a stop whose nudge comes late, when a connection already throws away what its
// client has sent, ends that connection nonetheless, although the client neither sends more nor hangs up.
func TestStopDuringLinger(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h, entered, stopping := newLineHandler(), make(chan bool), make(chan bool)
	h.onFeed = func(*lineSession) {
		entered <- true
		<-stopping
	}
	lingers := make(chan bool)
	r := startOn(t, newGoroutine, h, patientLimits(), nudgedListener{l, lingers})
	c := r.dial()
	_, err = io.WriteString(c, "bye\n"+strings.Repeat("echo abc\n", 20_000))
	require.NoError(t, err)
	<-entered
	done := r.stop(context.Background())
	r.awaitRefusals()
	close(stopping)
	<-lingers
	again := r.stop(context.Background())
	require.NoError(t, <-done)
	require.NoError(t, <-again)
}

func testShutdownParked(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	parked, waiting, held := r.dial(), r.dial(), r.dial()
	parked.send("park a", "echo behind")
	waiting.send("wait b")
	held.send("sync 3")
	r.await(func() bool { return r.h.isParked("a") && r.h.isParked("b") && r.h.syncing() > 0 })
	done := r.stop(context.Background())
	waiting.expectEnd()
	r.h.finish("a", "A")
	parked.expect("A", "behind")
	parked.expectEnd()
	r.h.synced(3)
	held.expect("synced 3")
	held.expectEnd()
	require.NoError(t, <-done)
}

func testShutdownCut(t *testing.T, f factory) {
	lim := patientLimits()
	lim.WriteTimeout = patience
	r := start(t, f, newLineHandler(), lim)
	parked, slow := r.dial(), r.dial()
	parked.send("park a")
	slow.send("big 50000000")
	r.eventually(func() bool { return r.h.isParked("a") && r.tr.Stats().Pending > 0 })
	ctx, cancel := context.WithCancel(context.Background())
	first := r.stop(context.Background())
	second := r.stop(ctx)
	r.awaitRefusals()
	r.pass(0)
	for _, s := range r.h.all()[:2] { // awaitRefusals may have opened others
		require.False(t, s.closed.Load(), "a parked command and an unsent reply are not dropped")
	}
	require.Empty(t, first)
	cancel()
	require.ErrorIs(t, <-second, context.Canceled)
	require.NoError(t, <-first)
	parked.expectEnd()
	r.h.finish("a", "A")
}

func testServeAfterShutdown(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	c := r.dial()
	r.session(0)
	require.NoError(t, <-r.stop(context.Background()))
	c.expectEnd()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.ErrorIs(t, r.tr.Serve(l), transport.ErrClosed)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func testListenerClosed(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorIs(t, r.tr.Serve(l), net.ErrClosed)
	c := r.dial() // the other listener goes on
	c.send("echo 1")
	c.expect("1")
}

package transport_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// engine is the command layer of a server behind a transport, without the rest of a server.
type engine struct {
	*session.Engine
	t     *testing.T
	ks    *keyspace.Keyspace
	tr    transport.Transport
	lim   transport.Limits
	clock *transporttest.Clock
	addr  net.Addr
}

// eachEngine runs test with the commands of a server behind each transport. The clock for the write
// timeout stands still.
func eachEngine(t *testing.T, test func(t *testing.T, e *engine)) {
	t.Helper()
	for name, f := range transportsOf(t) {
		t.Run(name, func(t *testing.T) { test(t, serve(t, f)) })
	}
}

// serve runs an engine behind a transport until the test ends.
func serve(t *testing.T, f transporttest.Factory) *engine {
	t.Helper()
	s, err := inproc.New(inproc.Epoch, []net.Listener{}, "--transport", "goroutine") // without listeners
	require.NoError(t, err)
	e := &engine{Engine: s.Engine(), t: t, ks: s.Keyspace(), lim: transporttest.PatientLimits(), clock: transporttest.NewClock()}
	e.tr = f(e.Engine, e.lim, e.clock)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e.addr = l.Addr()
	served := make(chan error, 1)
	go func() { served <- e.tr.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, <-e.stop())
		err := <-served
		require.True(t, err == nil || errors.Is(err, transport.ErrClosed), "%v", err)
		e.Close()
		e.ks.Close()
	})
	return e
}

// stop begins a graceful stop, and returns the channel for its result.
func (e *engine) stop() <-chan error {
	e.clock.Run()
	e.Drain()
	done := make(chan error, 1)
	go func() { done <- e.tr.Shutdown(context.Background()) }()
	return done
}

// dial connects a client, with TLS if the transport serves that.
func (e *engine) dial() *inproc.Client {
	e.t.Helper()
	nc, err := transporttest.Dial(e.tr, e.addr)
	require.NoError(e.t, err)
	c := inproc.NewClient(e.t, nc)
	c.Patience = transporttest.Patience
	return c
}

// pass advances the clock for the write timeout.
func (e *engine) pass(d time.Duration) {
	transporttest.Pass(transporttest.Bare(e.tr), e.clock, e.lim, d)
}

// eventually polls for a condition without an event.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, transporttest.Patience, time.Millisecond, what)
}

// stacks returns the memory of stacks.
func stacks() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.StackInuse)
}

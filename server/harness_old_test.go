package server_test

// What tests of the old harness share that have not moved yet.

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/server"
)

// say sends the words of a command and returns the bytes of its reply.
func (c *client) say(words string) string {
	c.t.Helper()
	return c.do(strings.Fields(words)...)
}

// set has commands answered with OK.
func (c *client) set(commands ...string) {
	c.t.Helper()
	for _, words := range commands {
		require.Equal(c.t, okReply, c.say(words), words)
	}
}

// hungFS is a disk whose fsyncs of files do not return while it hangs. Once it falters,
// one write is slow and those that follow do not return either.
type hungFS struct {
	persistence.OS
	hangs    atomic.Bool
	falters  atomic.Bool
	mute     atomic.Bool // writes hang
	waiting  atomic.Int64
	released atomic.Bool
	gate     chan struct{}
	once     sync.Once
}

func (h *hungFS) release() {
	h.once.Do(func() {
		h.released.Store(true)
		close(h.gate)
	})
}

func (h *hungFS) hang() {
	h.waiting.Add(1)
	<-h.gate
}

type hungFile struct {
	persistence.File
	fs *hungFS
}

// Create implements persistence.FS.
func (h *hungFS) Create(name string) (persistence.File, error) {
	f, err := h.OS.Create(name)
	return hungFile{f, h}, err
}

// Sync implements persistence.File.
func (f hungFile) Sync() error {
	if f.fs.hangs.Load() {
		f.fs.hang()
	}
	return f.File.Sync()
}

// Write implements persistence.File.
func (f hungFile) Write(b []byte) (int, error) {
	if f.fs.falters.CompareAndSwap(true, false) {
		<-time.After(20 * time.Millisecond) // a loop puts up with 5
		f.fs.mute.Store(true)
	} else if f.fs.mute.Load() {
		f.fs.hang()
	}
	return f.File.Write(b)
}

// startWithStore runs a server whose limits are in e.
func startWithStore(t *testing.T, kind string, e *elsewhere, flags ...string) *fixture {
	t.Helper()
	c, err := config.Load(append([]string{
		"--transport", kind, "--io-threads", "2", "--dir", t.TempDir(), "--store", "redis://user:canary@127.0.0.1:1",
	}, flags...), nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &fixture{t: t, clock: e.clock, log: &logBuffer{}, addr: l.Addr().String(), done: make(chan error, 1)}
	f.Server, err = server.New(c, server.Options{
		Log:       slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Listeners: []net.Listener{l}, Clock: e.clock, OpenStore: e.open,
	})
	require.NoError(t, err)
	go func() { f.done <- f.Run(context.Background()) }()
	t.Cleanup(f.end)
	eventually(t, "loaded", func() bool { return !f.Engine().Loading() })
	return f
}

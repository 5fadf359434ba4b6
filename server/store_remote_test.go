package server_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/cluster"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/server"
)

// elsewhere is a store in another keyspace, which several servers may share. It answers on
// goroutines of its own, once it is let.
type elsewhere struct {
	ks      *keyspace.Keyspace
	clock   *clocktest.Clock
	options cluster.Options

	mu     sync.Mutex
	gate   chan struct{} // guarded by mu: nil, or closed to let answers out
	asked  chan struct{}
	closed int // guarded by mu
	under  sync.WaitGroup
}

func newElsewhere(t *testing.T) *elsewhere {
	t.Helper()
	clock := clocktest.New(epoch)
	e := &elsewhere{ks: keyspace.New(keyspace.Options{Clock: clock}), clock: clock, asked: make(chan struct{}, 100)}
	t.Cleanup(e.ks.Close)
	return e
}

func (e *elsewhere) open(o cluster.Options) (server.RemoteStore, error) {
	e.options = o
	return e, nil
}

func (e *elsewhere) Submit(asks []*decide.Ask, _ bool, done func()) {
	e.mu.Lock()
	gate := e.gate
	e.mu.Unlock()
	e.under.Go(func() {
		e.asked <- struct{}{}
		if gate != nil {
			<-gate
		}
		h := e.ks.NewHandle()
		defer h.Close()
		for _, a := range asks {
			h.Decide(a)
		}
		done()
	})
}

func (e *elsewhere) Now() limit.Instant { return e.clock.Now() }

func (e *elsewhere) Info() cluster.Info { return cluster.Info{} }

func (e *elsewhere) Close() {
	e.under.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed++
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

// TestServersWithOneStoreShareLimits: what one admits counts for the other, and neither has
// a key of its own.
func TestServersWithOneStoreShareLimits(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		e := newElsewhere(t)
		first, second := startWithStore(t, kind, e), startWithStore(t, kind, e)
		one, other := first.dial(), second.dial()
		require.Equal(t, five(0, 2, 1, -1, 60), one.do("CL.THROTTLE", "k", "1", "1", "60"))
		require.Equal(t, five(0, 2, 0, -1, 120), other.do("CL.THROTTLE", "k", "1", "1", "60"))
		require.Equal(t, five(1, 2, 0, 60, 120), one.do("CL.THROTTLE", "k", "1", "1", "60"))
		for _, f := range []*fixture{first, second} {
			require.Zero(t, f.Keyspace().NewHandle().Len(0), "a key in the server itself")
			require.NotContains(t, f.log.String(), "canary")
		}
		require.Equal(t, "-ERR 'set' is not served with --store; ask the store itself\r\n", one.do("SET", "k", "v"))
		require.Equal(t, "-ERR DB index is out of range\r\n", one.do("SELECT", "1"))
		require.Equal(t, "+OK\r\n", one.do("SELECT", "0"))
	})
}

// TestServerWithStoreDescribesItself: clients see one server as before, with a section
// about the store, and without its password.
func TestServerWithStoreDescribesItself(t *testing.T) {
	e := newElsewhere(t)
	f := startWithStore(t, "goroutine", e, "--maxmemory", "100mb")
	c := f.dial()
	for field, want := range map[string]string{
		"redis_mode": "standalone", "role": "master", "cluster_enabled": "0", "connected_clients": "1", "maxmemory": "104857600",
		"aof_enabled": "0", "loading": "0", "store_url": "redis://user:***@127.0.0.1:1", "store_prefix": "cs:",
	} {
		require.Equal(t, want, c.info(field), field)
	}
	all := c.do("INFO", "everything")
	require.Contains(t, all, "\r\n# Keyspace\r\n\r\n# Store\r\n")
	require.NotContains(t, all, "canary")
	require.Contains(t, c.do("INFO"), "# Store\r\n")
	require.NotContains(t, c.do("CONFIG", "GET", "*"), "canary")
	require.Equal(t, array(bulk("store"), bulk("redis://user:***@127.0.0.1:1")), c.do("CONFIG", "GET", "store"))
	require.Contains(t, c.do("CONFIG", "SET", "store", "redis://b"), "can't set immutable config")
	require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "maxclients", "100"))
	require.Contains(t, c.do("CLIENT", "LIST"), "db=0")
	eventually(t, "the line of the start", func() bool {
		return strings.Contains(f.log.String(), "nothing here, everything in redis://user:***@127.0.0.1:1")
	})

	without := start(t, "goroutine").dial().do("INFO", "everything")
	require.NotContains(t, without, "# Store")
}

// TestStoreThatCannotBeOpenedIsAnError: files that the address names are read only when
// the store is opened, and the server says what is wrong with them.
func TestStoreThatCannotBeOpenedIsAnError(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	require.NoError(t, os.WriteFile(ca, []byte("no certificate"), 0o600))
	for parameters, want := range map[string]string{
		"ca=" + ca:                            "has no certificate",
		"ca=" + filepath.Join(dir, "missing"): "no such file",
		"cert=" + ca + "&key=" + ca:           "certificate",
	} {
		c, err := config.Load([]string{"--dir", dir, "--port", "0", "--store", "rediss://:canary@127.0.0.1:1?" + parameters}, nil)
		require.NoError(t, err)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		_, err = server.New(c, server.Options{Listeners: []net.Listener{l}})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "canary")
	}
}

// TestOptionsReachTheStore: each is handed over in the unit of the store.
func TestOptionsReachTheStore(t *testing.T) {
	e := newElsewhere(t)
	startWithStore(t, "goroutine", e, "--store-prefix", "limits:", "--store-timeout", "7", "--fail-policy", "open", "login:", "closed",
		"--store-servers", "3", "--hot-keys", "t:", "lease", "--hot-lease", "20", "--denial-cache", "0", "--store-max-value", "1mb",
		"--store-max-skew", "9", "--multi-across-slots", "refuse")
	checkStoreOptions(t, e.options)
}

// TestStopAnswersWhatTheStoreIsAsked: clients get the replies that are under way, and the
// store is closed once, behind them.
func TestStopAnswersWhatTheStoreIsAsked(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		e := newElsewhere(t)
		f := startWithStore(t, kind, e)
		c := f.dial()
		gate := make(chan struct{})
		e.mu.Lock()
		e.gate = gate
		e.mu.Unlock()
		c.command("CL.THROTTLE", "k", "1", "1", "60")
		<-e.asked
		f.Stop()
		close(gate)
		require.Equal(t, five(0, 2, 1, -1, 60), c.reply())
		c.expectEnd()
		f.end()
		require.Equal(t, 1, e.closed)
		require.True(t, strings.HasSuffix(strings.TrimSpace(f.log.String()), "msg=stopped"), f.log.String())
	})
}

// TestStateOnDiskIsLeftAloneWithStore: it is another server's, or that of a time before.
func TestStateOnDiskIsLeftAloneWithStore(t *testing.T) {
	dir := t.TempDir()
	before := start(t, "goroutine", "--dir", dir, "--appendonly", "yes")
	require.Equal(t, five(0, 2, 1, -1, 60), before.dial().do("CL.THROTTLE", "k", "1", "1", "60"))
	names := func() (all []string) {
		entries, err := os.ReadDir(filepath.Join(dir, "appendonlydir"))
		require.NoError(t, err)
		for _, entry := range entries {
			all = append(all, entry.Name())
		}
		return all
	}
	had := names()
	e := newElsewhere(t)
	f := startWithStore(t, "goroutine", e, "--dir", dir) // while the other one has the lock
	require.Equal(t, five(0, 2, 1, -1, 60), f.dial().do("CL.THROTTLE", "k", "1", "1", "60"))
	require.Contains(t, f.log.String(), "what is kept on disk is not used")
	require.Contains(t, f.dial().do("SAVE"), "-ERR 'save' is not served with --store")
	f.dial().command("SHUTDOWN", "SAVE")
	require.NoError(t, <-f.done)
	f.done <- nil // for the end of the test
	require.Equal(t, had, names())
}

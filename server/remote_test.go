package server_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/remote/engine"
	"github.com/cellserver/cellserver/server"
)

// sharedStore is a store with another keyspace, which several servers may share. It answers on its
// own goroutines, when its gate permits.
type sharedStore struct {
	ks      *keyspace.Keyspace
	clock   *clocktest.Clock
	options remote.Options

	mu      sync.Mutex
	shared  *remotedouble.Records // guarded by mu
	away    bool                  // guarded by mu: no script is run
	forbids bool                  // guarded by mu: scripts fail because of a missing right
	gate    chan struct{}         // guarded by mu: nil, or closed to let answers pass
	asked   chan struct{}
	closed  int          // guarded by mu
	evals   atomic.Int64 // the number of scripts that were sent
	under   sync.WaitGroup
}

func newSharedStore(t *testing.T) *sharedStore {
	t.Helper()
	clock := clocktest.New(inproc.Epoch)
	e := &sharedStore{ks: keyspace.New(keyspace.Options{Clock: clock}), clock: clock, shared: remotedouble.NewRecords(), asked: make(chan struct{}, 1000)}
	t.Cleanup(e.ks.Close)
	return e
}

func (e *sharedStore) open(o remote.Options) (server.RemoteStore, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.options = o
	return e, nil
}

func (e *sharedStore) Submit(asks []*decide.Ask, _ bool, done func()) {
	e.mu.Lock()
	gate := e.gate
	e.mu.Unlock()
	e.under.Go(func() {
		select {
		case e.asked <- struct{}{}:
		default: // no test looks at so many
		}
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

func (e *sharedStore) Eval(_ context.Context, script string, keys, args []string) (any, error) {
	e.evals.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.away:
		return nil, &engine.Error{Reason: engine.Starting, NotDone: true}
	case e.forbids:
		return nil, &engine.Error{Reason: "NOPERM", Text: "the user of the store may not run the command hscan"}
	}
	e.shared.Now = int64(e.clock.Now())
	return e.shared.Run(script, keys, args), nil
}

func (e *sharedStore) Confirm(ctx context.Context, script string, keys, args []string, d time.Duration) (engine.Confirmed, error) {
	reply, err := e.Eval(ctx, script, keys, args)
	if err != nil {
		return engine.Confirmed{}, err
	}
	return e.shared.Replicas.Confirm(ctx, reply, d)
}

func (e *sharedStore) Listen(ctx context.Context, channel string, heard func(err error)) {
	e.shared.Channel.Listen(ctx, channel, heard)
}

// setGate has the answers to the next asks wait until gate is closed, if it is not nil.
func (e *sharedStore) setGate(gate chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gate = gate
}

func (e *sharedStore) setAway(away bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.away = away
}

func (e *sharedStore) Now() limit.Instant { return e.clock.Now() }

func (e *sharedStore) Info() remote.Info { return remote.Info{} }

func (e *sharedStore) SetFailPolicies(byPrefix map[string]string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.options.FailPolicies = byPrefix
}

func (e *sharedStore) SetServers(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.options.Servers = n
}

func (e *sharedStore) Close() {
	e.under.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed++
}

// startOver runs a server whose limits are in e.
func startOver(w *inproc.World, e *sharedStore, options ...string) *inproc.Node {
	return startOnOver(w, faultfs.New(), e, options...)
}

// startOnOver is startOver for a server on a given disk.
func startOnOver(w *inproc.World, disk *faultfs.FS, e *sharedStore, options ...string) *inproc.Node {
	return w.StartWith(func(o *server.Options) {
		o.Clock, o.OpenStore, o.FS = e.clock, e.open, disk
	}, append([]string{"--store", "redis://user:canary@127.0.0.1:1"}, options...)...)
}

// TestServersWithOneStoreShareLimits: a call that one server admits counts for the other, and
// neither has a key of its own.
func TestServersWithOneStoreShareLimits(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		first, second := startOver(w, e), startOver(w, e)
		one, other := first.Dial(), second.Dial()
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), one.Do("CL.THROTTLE", "k", "1", "1", "60"))
		require.Equal(t, inproc.Five(0, 2, 0, -1, 120), other.Do("CL.THROTTLE", "k", "1", "1", "60"))
		require.Equal(t, inproc.Five(1, 2, 0, 60, 120), one.Do("CL.THROTTLE", "k", "1", "1", "60"))
		for _, f := range []*inproc.Node{first, second} {
			require.Zero(t, f.Keyspace().NewHandle().Len(0), "a key in the server itself")
			require.NotContains(t, f.Log.String(), "canary")
		}
		require.Equal(t, "-ERR 'set' is not served with --store; ask the store itself\r\n", one.Do("SET", "k", "v"))
		require.Equal(t, "-ERR DB index is out of range\r\n", one.Do("SELECT", "1"))
		require.Equal(t, "+OK\r\n", one.Do("SELECT", "0"))
	})
}

// TestFailPolicyIsChanged: CONFIG SET changes the policy for all keys or for some, or is refused.
func TestFailPolicyIsChanged(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		c := startOver(w, e, "--fail-policy", "closed", "api:", "open").Dial()
		inForce := func() map[string]string {
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.options.FailPolicies
		}
		require.Equal(t, map[string]string{"": "closed", "api:": "open"}, inForce())
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "fail-policy", "local login: closed"))
		require.Equal(t, map[string]string{"": "local", "login:": "closed"}, inForce())
		require.Contains(t, c.Do("CONFIG", "SET", "fail-policy", "half"), "argument")
		require.Equal(t, map[string]string{"": "local", "login:": "closed"}, inForce())
	})
}

// TestServerWithStoreDescribesItself: INFO describes one server as before, with a section about the
// store, and without its password.
func TestServerWithStoreDescribesItself(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		f := startOver(w, e, "--maxmemory", "100mb")
		c := f.Dial()
		for field, want := range map[string]string{
			"redis_mode": "standalone", "role": "master", "cluster_enabled": "0", "connected_clients": "1", "maxmemory": "104857600",
			"aof_enabled": "0", "loading": "0", "store_url": "redis://user:***@127.0.0.1:1", "store_prefix": "cs:",
		} {
			require.Equal(t, want, c.Info(field), field)
		}
		all := c.Do("INFO", "everything")
		require.Contains(t, all, "\r\n# Keyspace\r\n\r\n# Store\r\n")
		require.NotContains(t, all, "canary")
		require.Contains(t, c.Do("INFO"), "# Store\r\n")
		require.NotContains(t, c.Do("CONFIG", "GET", "*"), "canary")
		require.Equal(t, inproc.Array(inproc.Bulk("store"), inproc.Bulk("redis://user:***@127.0.0.1:1")), c.Do("CONFIG", "GET", "store"))
		require.Contains(t, c.Do("CONFIG", "SET", "store", "redis://b"), "can't set immutable config")
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "maxclients", "100"))
		require.Contains(t, c.Do("CLIENT", "LIST"), "db=0")
		require.Contains(t, f.Log.String(), "nothing here, everything in redis://user:***@127.0.0.1:1")

		without := w.Start().Dial().Do("INFO", "everything")
		require.NotContains(t, without, "# Store")
	})
}

// TestStoreThatCannotBeOpenedIsAnError: files that the URL names are read only when the store is
// opened, and the error of the server names the fault.
func TestStoreThatCannotBeOpenedIsAnError(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	require.NoError(t, os.WriteFile(ca, []byte("no certificate"), 0o600))
	for parameters, want := range map[string]string{
		"ca=" + ca:                            "has no certificate",
		"ca=" + filepath.Join(dir, "missing"): "no such file",
		"cert=" + ca + "&key=" + ca:           "certificate",
	} {
		inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
			err := w.Node(nil, "--store", "rediss://:canary@127.0.0.1:1?"+parameters).Run()
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "canary")
		})
	}
}

// TestOptionsReachTheStore: each option is passed in the unit of the store.
func TestOptionsReachTheStore(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		startOver(w, e, "--store-prefix", "limits:", "--store-timeout", "7", "--fail-policy", "open", "login:", "closed",
			"--store-servers", "3", "--hot-keys", "t:", "lease", "--hot-lease", "20", "--denial-cache", "0", "--store-max-value", "1mb",
			"--store-max-skew", "9", "--multi-across-slots", "refuse")
		e.mu.Lock()
		defer e.mu.Unlock()
		checkStoreOptions(t, e.options)
	})
}

// TestStopAnswersWhatTheStoreIsAsked: clients get the replies that are under way, and the store is
// closed once, after them.
func TestStopAnswersWhatTheStoreIsAsked(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		f := startOver(w, e)
		c := f.Dial()
		gate := make(chan struct{})
		e.mu.Lock()
		e.gate = gate
		e.mu.Unlock()
		c.Command("CL.THROTTLE", "k", "1", "1", "60")
		<-e.asked
		f.Server.Stop()
		close(gate)
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), c.Reply())
		c.ExpectEnd()
		require.NoError(t, f.Stop())
		require.Equal(t, 1, e.closed)
		require.True(t, strings.HasSuffix(strings.TrimSpace(f.Log.String()), "msg=stopped"), f.Log.String())
	})
}

// TestStateOnDiskIsLeftAloneWithStore: the state belongs to another server, or is from before the
// store was set.
func TestStateOnDiskIsLeftAloneWithStore(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		before := w.Start("--appendonly", "yes")
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), before.Dial().Do("CL.THROTTLE", "k", "1", "1", "60"))
		had := before.Disk.Names()
		f := startOnOver(w, before.Disk, newSharedStore(t)) // while the other server has the lock
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), f.Dial().Do("CL.THROTTLE", "k", "1", "1", "60"))
		require.Contains(t, f.Log.String(), "what is kept on disk is not used")
		require.Contains(t, f.Dial().Do("SAVE"), "-ERR 'save' is not served with --store")
		f.Dial().Command("SHUTDOWN", "SAVE")
		require.NoError(t, f.Ended())
		require.Equal(t, had, before.Disk.Names())
	})
}

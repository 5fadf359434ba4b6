package server_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/server"
)

// crashed returns a copy of the directory of a server that runs, which is what a
// process that dies now leaves.
func crashed(t *testing.T, dir string) string {
	t.Helper()
	left := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(left, "appendonlydir"), os.DirFS(filepath.Join(dir, "appendonlydir"))))
	return left
}

// after starts a server on what a crash has left, at an instant.
func after(t *testing.T, dir string, at limit.Instant) *fixture {
	t.Helper()
	c, err := config.Load([]string{"--transport", "goroutine", "--dir", dir, "--appendonly", "yes"}, nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := launchAt(t, c, l, nil, clocktest.New(at), func() {})
	eventually(t, "loaded", func() bool { return !f.Engine().Loading() })
	return f
}

// hour is a policy with a limit that nothing refills while a test lasts.
const hour = "RL.POLICY SET api LIMITS SW 10 3600 FIXED ANCHOR FIRST"

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

// awaitRewrite waits until the log was rewritten and the files of before are gone: whoever copies
// the directory must find each file that it has listed.
func awaitRewrite(c *client) {
	c.t.Helper()
	eventually(c.t, "rewritten", func() bool { return c.info("aof_base_size") != "0" && c.info("aof_rewrite_in_progress") == "0" })
}

// startStandby runs a server with the clock of the system, as one that replicates needs it.
func startStandby(t testing.TB, kind string, flags ...string) *fixture {
	t.Helper()
	c, err := config.Load(append([]string{"--transport", kind, "--io-threads", "2", "--dir", t.TempDir()}, flags...), nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := launchAt(t, c, l, nil, nil, func() {})
	eventually(t, "loaded", func() bool { return !f.Engine().Loading() })
	return f
}

// place is the host and the port of a server.
func (f *fixture) place() (host, port string) {
	host, port, err := net.SplitHostPort(f.addr)
	require.NoError(f.t, err)
	return host, port
}

// follows makes f a replica of primary, and returns when it has the state.
func (f *fixture) follows(primary *fixture) {
	f.t.Helper()
	host, port := primary.place()
	c := f.dial()
	defer c.Close()
	require.Contains(f.t, c.do("REPLICAOF", host, port), "+OK")
	f.awaitLink(primary)
}

// awaitLink returns when f is a replica of primary that has its state.
func (f *fixture) awaitLink(primary *fixture) {
	f.t.Helper()
	_, port := primary.place()
	eventually(f.t, "the link is up", func() bool {
		i := f.replication()
		return i["master_port"] == port && i["master_link_status"] == "up"
	})
}

// replication has the fields of INFO replication.
func (f *fixture) replication() map[string]string {
	f.t.Helper()
	c := f.dial()
	defer c.Close()
	fields := map[string]string{}
	for line := range strings.SplitSeq(c.do("INFO", "replication"), "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

func field(line, name string) string {
	_, rest, _ := strings.Cut(line, " "+name+"=")
	value, _, _ := strings.Cut(rest, " ")
	return value
}

const goodPolicies = `policies:
  api:
    comment: gold
    limits: [SW 10 3600 FIXED]
    overrides:
      vip*:
        limits: [SW 77 3600 FIXED]
  quiet:
    shadow: true
    limits: [SW 1 3600 FIXED]
`

// policyFile is a file of policies that a test changes.
type policyFile struct {
	t    testing.TB
	path string
}

func newPolicyFile(t testing.TB, text string) *policyFile {
	t.Helper()
	f := &policyFile{t, filepath.Join(t.TempDir(), "policies.yaml")}
	f.write(text)
	return f
}

func (f *policyFile) write(text string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(f.path, []byte(text), 0o600))
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

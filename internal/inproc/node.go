package inproc

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/server"
)

// Port is the port of each [Node].
const Port = 6379

// Node is a server in a [World]. It has its own host and disk. Its clock is the clock of the
// bubble, plus its skew.
type Node struct {
	*server.Server
	// Host is the address of the node, Disk its file system, and Log its log.
	Host string
	Disk *faultfs.FS
	Log  *LogBuffer
	// Made is called by Run after the server has been assembled and before it runs. It may be nil.
	Made func()

	world   *World
	setup   func(*server.Options)
	options []string
	skew    time.Duration
	done    chan error // receives the error of Run; nil while the server does not run
}

// Start runs a server until the end of the test. options are options of the command line; the first
// may be the path of a configuration file. When Start returns, the server has loaded its state.
func (w *World) Start(options ...string) *Node {
	w.t.Helper()
	return w.StartWith(nil, options...)
}

// StartWith does the same as Start. setup, unless it is nil, may change the options of the server.
func (w *World) StartWith(setup func(*server.Options), options ...string) *Node {
	w.t.Helper()
	n := w.Node(setup, options...)
	require.NoError(w.t, n.Run())
	return n
}

// Node does the same as StartWith, but does not run the server. [Node.Run] does that.
func (w *World) Node(setup func(*server.Options), options ...string) *Node {
	n := &Node{Host: w.Host(), Disk: faultfs.New(), Log: &LogBuffer{}, world: w, setup: setup, options: options}
	w.t.Cleanup(func() {
		if n.done != nil {
			require.NoError(w.t, n.Stop())
		}
	})
	return n
}

// Run assembles the server and runs it. When it returns, the server has loaded everything that
// needs no time to pass.
func (n *Node) Run() error {
	dir, err := filepath.Abs(".") // the name of the directory on Disk must be the same in each run of the test
	if err != nil {
		return err
	}
	args := []string{
		"--transport", "goroutine", "--dir", dir, "--bind", n.Host, "--port", strconv.Itoa(Port), "--admin-bind", n.Host,
	}
	if len(n.options) > 0 && !strings.HasPrefix(n.options[0], "-") { // the first option is the path of a configuration file
		args = append(n.options[:1:1], append(args, n.options[1:]...)...)
	} else {
		args = append(args, n.options...)
	}
	c, err := config.Load(args, nil)
	if err != nil {
		return err
	}
	o := server.Options{
		Time:   clock.Options{}.WithSources(n.time, n.time, n.time),
		Log:    slog.New(slog.NewTextHandler(n.Log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		FS:     n.Disk,
		Listen: func(_, address string) (net.Listener, error) { return n.world.Net.Listen(address) },
		Dial:   n.world.Dialer(n.Host),
	}
	if n.setup != nil {
		n.setup(&o)
	}
	if n.Server, err = server.New(c, o); err != nil {
		return err
	}
	if n.Made != nil {
		n.Made()
	}
	n.done = make(chan error, 1)
	go func() { n.done <- n.Server.Run(context.Background()) }()
	synctest.Wait()
	return nil
}

// time returns the time of the node's clocks in nanoseconds since the Unix epoch.
func (n *Node) time() int64 { return time.Now().Add(n.skew).UnixNano() }

// Skew moves the clocks of the node by d. The server must not be running.
func (n *Node) Skew(d time.Duration) { n.skew += d }

// Stop ends the server as SIGTERM does, and returns the result of its Run.
func (n *Node) Stop() error {
	n.Server.Stop()
	err := <-n.done
	n.done = nil
	return err
}

// Ended waits until the server ends without Stop, and returns the result of its Run.
func (n *Node) Ended() error {
	err := <-n.done
	n.done = nil
	return err
}

// Kill ends the server as kill -9 does. The connections of clients are reset. The disk keeps the
// data that was written so far, synced or not.
func (n *Node) Kill() { n.die((*faultfs.FS).Kill) }

// Crash does the same as Kill for a machine that loses power. rng chooses which of the data that
// was not synced remains on the disk.
func (n *Node) Crash(rng *rand.Rand) {
	n.die(func(disk *faultfs.FS) *faultfs.FS { return disk.Crash(rng) })
}

// die isolates the server, so that nothing it does from now on has an effect outside, and then ends
// it. left returns the disk that remains for the next run.
func (n *Node) die(left func(*faultfs.FS) *faultfs.FS) {
	n.world.Net.Unplug(n.Host)
	disk := n.Disk
	n.Disk = left(disk)
	n.Server.Stop()
	if err := <-n.done; err != nil {
		_, _ = io.WriteString(n.Log, "ended: "+err.Error()+"\n") // an error is expected, since the server has lost its disk and its network
	}
	n.done = nil
	n.world.Net.Unplug(n.Host)
}

// Restart runs a stopped node again, with additional options, which also apply to later runs.
func (n *Node) Restart(options ...string) {
	n.world.t.Helper()
	n.options = slices.Concat(n.options, options)
	require.NoError(n.world.t, n.Run())
}

// Addr returns the address of the node with its port.
func (n *Node) Addr() string { return net.JoinHostPort(n.Host, strconv.Itoa(Port)) }

// Dial connects a client on the node's own host to the node.
func (n *Node) Dial() *Client {
	n.world.t.Helper()
	return n.DialFrom(n.Host)
}

// DialFrom connects a client on host to the node.
func (n *Node) DialFrom(host string) *Client {
	n.world.t.Helper()
	return n.DialAt(host, n.Addr())
}

// DialAt connects a client on host to address, which need not be the address of the node.
func (n *Node) DialAt(host, address string) *Client {
	n.world.t.Helper()
	conn, err := n.world.Net.Dial(n.world.t.Context(), host, address)
	require.NoError(n.world.t, err)
	return NewClient(n.world.t, conn)
}

// Follow makes n a replica of primary, and returns when n has the state of primary.
func (n *Node) Follow(primary *Node) {
	n.world.t.Helper()
	c := n.Dial()
	defer c.Close()
	require.Contains(n.world.t, c.Do("REPLICAOF", primary.Host, strconv.Itoa(Port)), "+OK")
	n.world.Until("the link is up", time.Millisecond, time.Minute, func() bool {
		is := n.Replication()
		return is["master_host"] == primary.Host && is["master_link_status"] == "up"
	})
}

// Agree waits until each of replicas has reached the offset of n, and requires its state to be
// equal to the state of n.
func (n *Node) Agree(replicas ...*Node) {
	n.world.t.Helper()
	for _, r := range replicas {
		n.world.Until("the replica has everything", time.Millisecond, time.Minute, func() bool {
			is, has := n.Replication(), r.Replication()
			return is["master_replid"] == has["master_replid"] && is["master_repl_offset"] == has["slave_repl_offset"]
		})
		require.Equal(n.world.t, n.State(), r.State())
	}
}

// Replication returns the fields of INFO replication of the node.
func (n *Node) Replication() map[string]string {
	n.world.t.Helper()
	c := n.Dial()
	defer c.Close()
	fields := map[string]string{}
	for line := range strings.SplitSeq(c.Do("INFO", "replication"), "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// State returns all keys that have not expired, with their values and expiries, by "database/key".
func (n *Node) State() map[string]entry.Entry {
	n.world.t.Helper()
	all := map[string]entry.Entry{}
	handle := n.Keyspace().NewHandle()
	defer handle.Close()
	now := handle.Refresh()
	require.NoError(n.world.t, n.Keyspace().Snapshot(func(db int, key []byte, e entry.Entry) {
		if e.Expiry > now {
			e.Value = slices.Clone(e.Value)
			all[strconv.Itoa(db)+"/"+string(key)] = e
		}
	}, func() error { return nil }))
	return all
}

// FillDisk makes writes to the disk of the node fail for lack of space if full is true, else
// succeed again.
func (n *Node) FillDisk(full bool) {
	if !full {
		n.Disk.Inject(nil)
		return
	}
	n.Disk.Inject(func(_ int, c faultfs.Call) error {
		if c.Op == "write" {
			return syscall.ENOSPC
		}
		return nil
	})
}

// StartStepped does the same as [World.Start] for a server whose clock moves only when the test
// moves it. The clock also counts timers. Timeouts that do not use this clock still pass with the
// time of the bubble.
func (w *World) StartStepped(options ...string) (*Node, *clocktest.Clock) {
	w.t.Helper()
	clock := clocktest.New(Epoch)
	return w.StartWith(func(o *server.Options) { o.Clock = clock }, options...), clock
}

// StartOn does the same as [World.Start] for a server on the given disk, such as the result of
// [faultfs.FS.Kill] for the disk of a running server.
func (w *World) StartOn(disk *faultfs.FS, options ...string) *Node {
	w.t.Helper()
	n := w.Node(nil, options...)
	n.Disk = disk
	require.NoError(w.t, n.Run())
	return n
}

// StartAt does the same as StartOn for a server whose clocks start at the given instant.
func (w *World) StartAt(at limit.Instant, disk *faultfs.FS, options ...string) *Node {
	w.t.Helper()
	n := w.Node(nil, options...)
	n.Disk = disk
	n.Skew(at.Sub(n.Now()))
	require.NoError(w.t, n.Run())
	return n
}

// Now returns the present instant of the node's clocks.
func (n *Node) Now() limit.Instant { return limit.Instant(n.time()) }

// Left returns a copy of the disk as it would be if the process were killed now. The server
// continues.
func (n *Node) Left() *faultfs.FS { return n.Disk.Kill() }

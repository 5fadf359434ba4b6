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

// Port is where every [Node] listens.
const Port = 6379

// Node is a server in a [World], on a host and a disk of its own. Its clock is the bubble's.
type Node struct {
	*server.Server
	// Host is its address, Disk what it keeps its state on, and Log what it has logged.
	Host string
	Disk *faultfs.FS
	Log  *LogBuffer
	// Made, unless it is nil, is called by Run once the server is assembled, before it runs.
	Made func()

	world   *World
	setup   func(*server.Options)
	options []string
	skew    time.Duration
	done    chan error // nil while nothing runs
}

// Start runs a server with options as on the command line until the test ends, of which the first
// may be the path of a file. It has loaded what there is to be loaded.
func (w *World) Start(options ...string) *Node {
	w.t.Helper()
	return w.StartWith(nil, options...)
}

// StartWith is Start with what setup, unless it is nil, changes of the server's options.
func (w *World) StartWith(setup func(*server.Options), options ...string) *Node {
	w.t.Helper()
	n := w.Node(setup, options...)
	require.NoError(w.t, n.Run())
	return n
}

// Node is StartWith of a server that does not run yet: see [Node.Run].
func (w *World) Node(setup func(*server.Options), options ...string) *Node {
	n := &Node{Host: w.Host(), Disk: faultfs.New(), Log: &LogBuffer{}, world: w, setup: setup, options: options}
	w.t.Cleanup(func() {
		if n.done != nil {
			require.NoError(w.t, n.Stop())
		}
	})
	return n
}

// Run assembles the server and runs it. What can be loaded without time passing is loaded.
func (n *Node) Run() error {
	dir, err := filepath.Abs(".") // one name for what is on Disk
	if err != nil {
		return err
	}
	args := []string{
		"--transport", "goroutine", "--dir", dir, "--bind", n.Host, "--port", strconv.Itoa(Port), "--admin-bind", n.Host,
	}
	if len(n.options) > 0 && !strings.HasPrefix(n.options[0], "-") { // a file
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

// time is the node's clock, in nanoseconds.
func (n *Node) time() int64 { return time.Now().Add(n.skew).UnixNano() }

// Skew moves the node's clocks, and so its time, by d. It must not run.
func (n *Node) Skew(d time.Duration) { n.skew += d }

// Stop ends the server as SIGTERM does, and returns what Run says.
func (n *Node) Stop() error {
	n.Server.Stop()
	err := <-n.done
	n.done = nil
	return err
}

// Ended returns what Run says of a server that ends by itself, when it has.
func (n *Node) Ended() error {
	err := <-n.done
	n.done = nil
	return err
}

// Kill ends the server as kill -9 does: clients see their connections reset, and the disk has
// what was written so far.
func (n *Node) Kill() { n.die((*faultfs.FS).Kill) }

// Crash is Kill of a machine that loses power: of what was not synced, the disk has what rng
// decides.
func (n *Node) Crash(rng *rand.Rand) {
	n.die(func(disk *faultfs.FS) *faultfs.FS { return disk.Crash(rng) })
}

// die has nothing that the server does from now on reach anybody, and then ends it.
func (n *Node) die(left func(*faultfs.FS) *faultfs.FS) {
	n.world.Net.Unplug(n.Host)
	disk := n.Disk
	n.Disk = left(disk)
	n.Server.Stop()
	if err := <-n.done; err != nil {
		_, _ = io.WriteString(n.Log, "ended: "+err.Error()+"\n") // its disk and its network are gone
	}
	n.done = nil
	n.world.Net.Unplug(n.Host)
}

// Restart runs a node that does not run, with further options.
func (n *Node) Restart(options ...string) {
	n.world.t.Helper()
	n.options = slices.Concat(n.options, options)
	require.NoError(n.world.t, n.Run())
}

// Addr is the address that the node listens at.
func (n *Node) Addr() string { return net.JoinHostPort(n.Host, strconv.Itoa(Port)) }

// Dial connects a client on the node's own host.
func (n *Node) Dial() *Client {
	n.world.t.Helper()
	return n.DialFrom(n.Host)
}

// DialFrom connects a client on another host.
func (n *Node) DialFrom(host string) *Client {
	n.world.t.Helper()
	return n.DialAt(host, n.Addr())
}

// DialAt connects a client on a host with an address.
func (n *Node) DialAt(host, address string) *Client {
	n.world.t.Helper()
	conn, err := n.world.Net.Dial(n.world.t.Context(), host, address)
	require.NoError(n.world.t, err)
	return NewClient(n.world.t, conn)
}

// Follow makes n a replica of primary, and returns when it has the state.
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

// Agree waits until replicas are at the offset of n, and compares what they hold.
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

// Replication has the fields of INFO replication.
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

// State has all keys that have not expired, by database and key, and what they hold.
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

// FillDisk makes the disk of the node have no room for a write, or room again.
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

// StartStepped is [World.Start] of a server whose clock stands still but for the steps of a test, and
// counts timers. Timeouts that are not the store's still pass with the time of the bubble.
func (w *World) StartStepped(options ...string) (*Node, *clocktest.Clock) {
	w.t.Helper()
	clock := clocktest.New(Epoch)
	return w.StartWith(func(o *server.Options) { o.Clock = clock }, options...), clock
}

// StartOn is [World.Start] of a server that finds what a disk has, such as what [faultfs.FS.Kill]
// returns of the disk of a server that runs.
func (w *World) StartOn(disk *faultfs.FS, options ...string) *Node {
	w.t.Helper()
	n := w.Node(nil, options...)
	n.Disk = disk
	require.NoError(w.t, n.Run())
	return n
}

// StartAt is StartOn of a server whose clocks show an instant of their own.
func (w *World) StartAt(at limit.Instant, disk *faultfs.FS, options ...string) *Node {
	w.t.Helper()
	n := w.Node(nil, options...)
	n.Disk = disk
	n.Skew(at.Sub(n.Now()))
	require.NoError(w.t, n.Run())
	return n
}

// Now is what the node's clock shows.
func (n *Node) Now() limit.Instant { return limit.Instant(n.time()) }

// Left is the disk as a process leaves it that dies now. The server goes on.
func (n *Node) Left() *faultfs.FS { return n.Disk.Kill() }

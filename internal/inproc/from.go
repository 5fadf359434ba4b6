package inproc

import (
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/server"
)

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

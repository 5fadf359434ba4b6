package replication

import (
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

const (
	errWaitTimeout resp.Error = "ERR timeout is not an integer or out of range"
	errWaitReplica resp.Error = "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated."
)

// maxReplicas is larger than the number of replicas of any primary. A client that waits for more
// replicas waits until the timeout.
const maxReplicas = 1 << 20

// wait implements WAIT. It replies with the number of replicas when enough replicas have
// acknowledged everything that any client has written before, or after the timeout. In a
// transaction or script it replies at once. While the server is stopping, it closes the client
// instead of waiting.
func wait(c *command.Call) {
	n := c.Server.Node()
	if n.Role().Replica {
		c.Fail(errWaitReplica)
		return
	}
	replicas, ok := arg.Int(c.Args[1])
	if !ok {
		c.Fail(resp.ErrNotInteger)
		return
	}
	timeout, err := waitTimeout(c.Args[2])
	if err != "" {
		c.Fail(err)
		return
	}
	position := uint64(0)
	if p := c.Server.Options.Persistence; p != nil {
		position = p.Position()
	}
	acked := n.Acked(position)
	switch {
	case int64(acked) >= replicas || env.Refusal(n) != "": // the condition is met already, or cannot be met
	case c.StopKeepsFromWaiting():
		c.Client.Closing = true
		return
	case c.MayWait():
		park(c, n, int(min(replicas, maxReplicas)), position, timeout)
		return
	}
	c.W.Int(int64(acked))
}

// waitTimeout parses the timeout of WAIT, in milliseconds. It reduces a longer time to maxTimeout.
// A result of 0 means no timeout. The error is "" on success.
func waitTimeout(b []byte) (time.Duration, resp.Error) {
	switch n, ok := arg.Int(b); {
	case !ok:
		return 0, errWaitTimeout
	case n < 0:
		return 0, resp.ErrTimeoutNegative
	default:
		return time.Duration(min(n, maxTimeout)) * time.Millisecond, ""
	}
}

// waiting is a blocked WAIT. The node gets it as the peer to wake. If the node woke the client's
// own peer, the client's session would run, and would find its command still blocked.
type waiting struct {
	transport.Peer
	node     env.Acknowledgements
	keeps    env.Persistence // the log of effects; nil if the server has no persistence
	parked   *command.Wait
	n        int
	position uint64
	stop     func() bool // stops the timer of the timeout; nil if there is none
	due      atomic.Bool // whether look is about to run
}

// park blocks the client until enough replicas have acknowledged everything before position, or
// until the timeout. replicas is the number of replicas that are enough. A timeout of 0 means no
// timeout.
func park(c *command.Call, n env.Acknowledgements, replicas int, position uint64, timeout time.Duration) {
	w := &waiting{
		Peer: c.Client.Peer, node: n, keeps: c.Server.Options.Persistence,
		parked: c.NewWait(0), n: replicas, position: position,
	}
	w.parked.NoEffect, w.parked.Unanswered = true, true
	w.parked.OnTimeout = func(_ env.Store, reply *resp.Writer) { reply.Int(int64(n.Acked(position))) }
	if timeout > 0 {
		w.stop = c.Store.AfterFunc(timeout, func() { w.parked.Interrupt(false) })
	}
	w.parked.Cancel = w.cancel
	c.Park(w.parked)
	w.Wake()
}

// cancel stops the timer. It is called when the client has disconnected or has its reply.
func (w *waiting) cancel() {
	if w.stop != nil {
		w.stop()
	}
}

// Wake implements [transport.Peer]: it starts look on another goroutine, because the caller may
// hold locks of the node. It does nothing if the wait is over or look is about to run.
func (w *waiting) Wake() {
	if w.parked.State.Load() == command.WaitPending && !w.due.Swap(true) {
		w.parked.Client.Server.Host.Work.Spawn(w.look)
	}
}

// look asks the node how many replicas have acknowledged, and replies if the wait is over. Before,
// it makes the log write everything up to the position, because replicas get only what was written,
// and it is possible that no other goroutine writes it while the client waits.
func (w *waiting) look() {
	w.due.Store(false)
	if w.keeps != nil {
		w.keeps.Await(w.position, quietPeer{w.Peer})
	}
	acked, is := w.node.Await(w.n, w.position, w)
	if is != transport.Pending && w.parked.Finish(func(reply *resp.Writer) { reply.Int(int64(acked)) }) {
		w.cancel()
	}
}

// quietPeer is a peer that ignores calls of Wake.
type quietPeer struct{ transport.Peer }

// Wake does nothing, because a peer of this type has no event loop.
func (quietPeer) Wake() {}

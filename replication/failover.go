package replication

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
)

// The errors of FAILOVER, in the words of Redis.
const (
	errNoFailover     resp.Error = "ERR No failover in progress."
	errFailoverRuns   resp.Error = "ERR FAILOVER already in progress."
	errFailoverTarget resp.Error = "ERR FAILOVER target HOST and PORT is not a replica."
	// This one is ours: a Redis cannot go on from our stream.
	errFailoverRedis   resp.Error = "ERR FAILOVER target is a Redis or Valkey, which takes over by REPLICAOF NO ONE"
	errFailoverOffline resp.Error = "ERR FAILOVER target replica is not online."
)

const (
	// reachFor is for how long a target that cannot be reached is tried at least.
	reachFor = 5 * time.Second
	// confirmFor is for how long a node that has taken over has changes wait for the first
	// acknowledgement of the old primary. One that dies meanwhile has answered none, so the old
	// primary may lead again. It goes on without if the old primary has died.
	confirmFor = 5 * time.Second
)

// confirm is the time between taking over and the acknowledgement of the old primary.
type confirm struct {
	client int64         // that the old primary is
	until  time.Duration // reading at which it is not waited for any more; 0 if it is not
}

// awaitConfirmation has changes wait, before the node takes over for the client of that id.
func (n *Node) awaitConfirmation(client int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.confirm = confirm{client, n.o.Stopwatch() + confirmFor}
	n.o.Host.PauseWrites()
}

// confirmed has them go on. The caller holds mu.
func (n *Node) confirmed() {
	if n.confirm.until != 0 {
		n.confirm = confirm{}
		n.o.Host.Resume()
	}
}

// confirmLate is confirmed when the old primary has said nothing for long.
func (n *Node) confirmLate() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.confirm.until != 0 && n.o.Stopwatch() >= n.confirm.until {
		n.o.Log.Warn("the old primary has not acknowledged that this node has taken over")
		n.confirmed()
	}
}

// misses takes note of why a link with the target has ended before there was an answer. A refused
// connection says that the target has ended.
func (h *handover) misses(why error, now time.Duration) {
	if h.state == handoverUnderWay && h.asked && errors.Is(why, syscall.ECONNREFUSED) && now < h.askedAt+confirmFor {
		h.abort = "Failover target has ended before it accepted changes"
	}
}

// Failover implements env.Node. From its return on, commands that change something are
// postponed, until the handover has ended.
func (n *Node) Failover(c protocol.Failover) resp.Error {
	replicas := n.o.Source.Replicas()
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.Abort {
		if n.handover.state == handoverNone {
			return errNoFailover
		}
		n.handover.abort = "Failover manually aborted"
		n.nudge()
		return ""
	}
	if err := n.failoverRefused(c, replicas); err != "" {
		return err
	}
	n.handover, n.confirm = handover{state: handoverWaiting, to: place{c.Host, c.Port}, force: c.Force}, confirm{}
	if c.Timeout > 0 {
		n.handover.until = n.o.Stopwatch() + c.Timeout
	}
	n.o.Host.PauseWrites()
	n.o.Log.Info("a failover was asked for", "target", n.handover.to.address())
	n.nudge()
	return ""
}

// failoverRefused says why there can be no failover, in the order of Redis.
func (n *Node) failoverRefused(c protocol.Failover, replicas []ReplicaInfo) resp.Error {
	if n.handover.state != handoverNone {
		return errFailoverRuns
	}
	able := 0 // a Redis cannot, which is an error only if FAILOVER names it
	for _, r := range replicas {
		if !r.Redis || c.Host != "" {
			able++
		}
	}
	if err := c.Refused(n.replica, able); err != "" || c.Host == "" {
		return err
	}
	r, ok := find(replicas, place{c.Host, c.Port})
	switch {
	case !ok:
		return errFailoverTarget
	case r.Redis:
		return errFailoverRedis
	case !r.Online:
		return errFailoverOffline
	}
	return ""
}

// find returns the replica that listens at a place.
func find(replicas []ReplicaInfo, at place) (ReplicaInfo, bool) {
	for _, r := range replicas {
		if placeOf(r) == at {
			return r, true
		}
	}
	return ReplicaInfo{}, false
}

// stepHandover does what can be done now of a handover that is under way. Only Run calls it.
func (n *Node) stepHandover(ctx context.Context) {
	n.mu.Lock()
	h := n.handover
	n.mu.Unlock()
	switch {
	case h.state == handoverNone:
	case h.abort != "":
		n.abortHandover(h.abort)
	case h.state == handoverWaiting:
		n.awaitTarget(ctx, &h)
	case !h.asked && n.o.Stopwatch() >= max(h.until, h.began+reachFor):
		n.giveUpTarget(ctx, h.to)
	}
}

// giveUpTarget ends a handover whose target cannot be reached. One that is being asked just now
// may take over, so that goes on.
func (n *Node) giveUpTarget(ctx context.Context, to place) {
	n.stopLinks()
	n.mu.Lock()
	goesOn := n.handover.state == handoverUnderWay && n.handover.asked
	n.mu.Unlock()
	if goesOn {
		n.startLinks(ctx, to)
		return
	}
	n.abortHandover("Failover target could not be reached")
}

// awaitTarget hands over once the target has all of the stream, which stands still.
func (n *Node) awaitTarget(ctx context.Context, h *handover) {
	t := n.tap.Load()
	if t == nil {
		n.abortHandover("There is no stream that a replica could have")
		return
	}
	if !t.isSealed() {
		n.o.Keyspace.Exclusively(func() {}) // what had begun before the pause has ended then
		if err := n.log.NoteClock(); err != nil {
			n.abortHandover("The log cannot be written: " + err.Error())
			return
		}
		t.seal()
	}
	late := h.until != 0 && n.o.Stopwatch() >= h.until
	to, ready := n.target(h)
	switch {
	case t.changed():
		n.abortHandover("Something was changed in spite of the pause")
	case ready && t.isSealed():
		n.handOver(ctx, to)
	case late && h.force:
		n.o.Log.Warn("the target of the failover has not caught up in time and takes over nevertheless", "target", h.to.address())
		n.handOver(ctx, h.to)
	case late:
		n.abortHandover("Replica never caught up before timeout")
	}
}

// target returns a replica that may take over and has all of the stream.
func (n *Node) target(h *handover) (place, bool) {
	offset := n.o.Source.Offset()
	for _, r := range n.o.Source.Replicas() {
		at := placeOf(r)
		if r.Online && !r.Redis && r.Acked == offset && (h.to == place{} || h.to == at) {
			return at, true
		}
	}
	return place{}, false
}

// handOver makes this node a replica of the target, which is asked to take over. The pause
// ends when it has: see conclude.
func (n *Node) handOver(ctx context.Context, to place) {
	n.mu.Lock()
	if n.handover.state != handoverWaiting || n.handover.abort != "" {
		n.mu.Unlock()
		return
	}
	n.handover.state, n.handover.to, n.handover.began = handoverUnderWay, to, n.o.Stopwatch()
	n.roleState = roleState{replica: true, primary: to, phase: phaseConnect, downSince: n.o.Stopwatch()}
	n.o.Host.SetReadOnly(true)
	n.o.Host.SetPrimary(to.host, to.port)
	n.mu.Unlock()
	n.o.Log.Info("the target of the failover is asked to take over", "target", to.address(), "offset", n.o.Source.Offset())
	n.f.related, n.following = true, true
	n.startLinks(ctx, to)
}

// abortHandover makes this node the primary that it was. Run calls it, and nobody else ends
// a handover meanwhile but the goroutine that it stops.
func (n *Node) abortHandover(why string) {
	n.stopLinks()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.handover.state == handoverNone { // it has succeeded just before
		if n.order == orderNone {
			n.order = orderReplicaOf
		}
		n.nudge()
		return
	}
	if t := n.tap.Load(); t != nil {
		t.open()
	}
	n.following, n.f.related = false, false
	n.handover, n.roleState = handover{}, roleState{}
	n.require()
	n.o.Host.SetMasterDown(false)
	n.o.Host.SetReadOnly(false)
	n.o.Host.SetPrimary("", "")
	n.o.Host.Resume()
	n.o.Log.Warn("the failover was aborted", "reason", why)
}

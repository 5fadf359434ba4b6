package replication

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
)

// These are the error replies of FAILOVER. They have the texts of Redis, except for
// errFailoverRedis.
const (
	errNoFailover     resp.Error = "ERR No failover in progress."
	errFailoverRuns   resp.Error = "ERR FAILOVER already in progress."
	errFailoverTarget resp.Error = "ERR FAILOVER target HOST and PORT is not a replica."
	// Redis does not have this error. It is needed because a Redis cannot continue this server's
	// stream.
	errFailoverRedis   resp.Error = "ERR FAILOVER target is a Redis or Valkey, which takes over by REPLICAOF NO ONE"
	errFailoverOffline resp.Error = "ERR FAILOVER target replica is not online."
)

const (
	// reachFor is the minimum time for which the node tries to connect to the target.
	reachFor = 5 * time.Second
	// confirmFor is the time for which a node that was promoted by FAILOVER postpones changes,
	// unless the old primary acknowledges as a replica before. If the new primary dies in that
	// time, it has not replied to any change, so the old primary may become primary again. If the
	// old primary does not acknowledge in that time, the new primary accepts changes without the
	// acknowledgement.
	confirmFor = 5 * time.Second
)

// confirmation is the state of a promoted node that waits for the first acknowledgement of the
// old primary.
type confirmation struct {
	client int64         // client ID of the connection of the old primary
	until  time.Duration // stopwatch reading at which the wait ends; 0 if no wait is in progress
}

// awaitConfirmation postpones commands that write, until the old primary has acknowledged as a
// replica or confirmFor has passed. It is called before the node takes over from its primary, whose
// connection has the client ID client.
func (n *Node) awaitConfirmation(client int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.confirm = confirmation{client, n.o.Stopwatch() + confirmFor}
	n.o.Host.PauseWrites()
}

// endConfirmation ends the wait for the old primary, if there is one, and resumes commands that
// write. The caller must hold mu.
func (n *Node) endConfirmation() {
	if n.confirm.until != 0 {
		n.confirm = confirmation{}
		n.o.Host.Resume()
	}
}

// expireConfirmation ends the wait for the old primary if it has not acknowledged within
// confirmFor.
func (n *Node) expireConfirmation() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.confirm.until != 0 && n.o.Stopwatch() >= n.confirm.until {
		n.o.Log.Warn("accepting writes although the old primary has not acknowledged the takeover")
		n.endConfirmation()
	}
}

// linkFailed is called when a link with the target has ended before the target has answered. why is
// the reason, and now is the stopwatch reading. If the target refuses connections within confirmFor
// after the request to take over, its process has ended, and linkFailed requests that the handover
// is aborted.
func (h *handover) linkFailed(why error, now time.Duration) {
	if h.state == handoverUnderWay && h.asked && errors.Is(why, syscall.ECONNREFUSED) && now < h.askedAt+confirmFor {
		h.abort = "Failover target has ended before it accepted changes"
	}
}

// Failover implements env.Node: it begins the failover c, or aborts the present one if c says so.
// The result is the error to reply, "" if there is none. Once a failover has begun, commands that
// write are postponed until the handover has ended.
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
	n.handover, n.confirm = handover{state: handoverWaiting, to: place{c.Host, c.Port}, force: c.Force}, confirmation{}
	if c.Timeout > 0 {
		n.handover.until = n.o.Stopwatch() + c.Timeout
	}
	n.o.Host.PauseWrites()
	n.o.Log.Info("failover requested", "target", n.handover.to.address())
	n.nudge()
	return ""
}

// failoverRefused returns the error reply if the failover c is not possible, "" if it is. The
// checks have the same order as in Redis. The caller must hold mu.
func (n *Node) failoverRefused(c protocol.Failover, replicas []ReplicaInfo) resp.Error {
	if n.handover.state != handoverNone {
		return errFailoverRuns
	}
	able := 0 // number of replicas that may take over. A Redis may not, but if FAILOVER names it as the target, a later check reports that
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

// find returns the replica that listens at the host and port at. It returns false if there is no
// such replica.
func find(replicas []ReplicaInfo, at place) (ReplicaInfo, bool) {
	for _, r := range replicas {
		if placeOf(r) == at {
			return r, true
		}
	}
	return ReplicaInfo{}, false
}

// stepHandover does the next step of the handover, if one is possible. Only Run calls it.
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

// giveUpTarget ends a handover to a target that cannot be reached. If the target has just been
// asked to take over, it may do so, and the handover continues.
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

// awaitTarget hands over to the target when the target has acknowledged all of the stream, or at
// the timeout if the failover is forced. It aborts the handover if there is no stream, if the log
// cannot be written, if effects were recorded in spite of the pause, and at the timeout of a
// failover without FORCE. Otherwise it returns, and Run calls it again. The first call seals the
// tap, so that the stream does not grow any more.
func (n *Node) awaitTarget(ctx context.Context, h *handover) {
	t := n.tap.Load()
	if t == nil {
		n.abortHandover("There is no stream that a replica could have")
		return
	}
	if !t.isSealed() {
		n.o.Keyspace.Exclusively(func() {}) // Exclusively waits for the commands that had begun before the pause
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

// target returns the address of a replica that may take over and has acknowledged all of the
// stream. If the failover names a target, only that replica may. The second result is false if
// there is no such replica.
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

// handOver makes this node a replica of the target, whose address is to, and begins a link on which
// the target is asked to take over. It does nothing if the handover is being aborted. The pause of
// commands that write ends when the target has answered: see [Node.conclude].
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
	n.o.Log.Info("asking the failover target to become the primary", "target", to.address(), "offset", n.o.Source.Offset())
	n.f.related, n.following = true, true
	n.startLinks(ctx, to)
}

// abortHandover stops the links and makes this node a primary again. why is the reason that it
// logs. Only Run calls it. If the link goroutine completes the handover before the links are
// stopped, abortHandover only lets the node follow the target again.
func (n *Node) abortHandover(why string) {
	n.stopLinks()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.handover.state == handoverNone { // the handover has succeeded in the meantime
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

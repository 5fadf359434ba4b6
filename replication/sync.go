package replication

import (
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// These are the answers to PSYNC if the node cannot serve the replica. The first four have the
// texts of Redis. A replica tries again after NOMASTERLINK.
const (
	errSyncMaster   resp.Error = "ERR PSYNC FAILOVER can't be sent to a master."
	errSyncReplID   resp.Error = "ERR PSYNC FAILOVER replid must match my replid."
	errSyncFailover resp.Error = "NOMASTERLINK Can't SYNC while failing over"
	errSyncNoLink   resp.Error = "NOMASTERLINK Can't SYNC while not connected with my master"
	errSyncFault    resp.Error = "NOMASTERLINK Can't SYNC while the log cannot be written"
	errSyncRedis    resp.Error = "ERR This server has no replicas but servers of its own kind"
	errSyncEnding   resp.Error = "NOMASTERLINK Can't SYNC while the server is shutting down"
)

// PSync implements env.Node: it answers the PSYNC c of a replica. p sends the stream after reply.
// If err is not "", the replica is refused. An answer that needs exclusive use of the keyspace is
// left for Run. Then reply is nil, and the answer to PSYNC is the first output of p.
func (n *Node) PSync(c protocol.PSync) (reply []byte, p transport.Pump, err resp.Error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.syncRefused(&c); err != "" {
		return nil, nil, err
	}
	if !c.Failover && (n.replica || n.tap.Load() != nil) {
		return n.answer(&c)
	}
	deferred := &deferredPump{call: c}
	n.deferred = append(n.deferred, deferred)
	n.nudge()
	return nil, deferred, ""
}

// syncRefused returns the error if the replica that has sent c cannot be served now, "" if it
// can. It clears c.Failover if this node has taken over already. The caller holds mu.
func (n *Node) syncRefused(c *protocol.PSync) resp.Error {
	if c.Failover && !n.replica && c.ReplID == n.o.Source.History().ID2 && c.ReplID != "" {
		// This node has taken over, but the answer that said so was lost. If the request were
		// refused now, there would be two primaries.
		c.Failover = false
	}
	switch {
	case c.Capa&protocol.CapaCell1 == 0 && n.o.ServeRedis == nil:
		return errSyncRedis
	case c.Failover && !n.replica:
		return errSyncMaster
	case c.Failover && c.ReplID != n.o.Source.History().ID && !n.hasAllOf(c):
		return errSyncReplID
	case n.handover.state == handoverWaiting && n.o.Source.Resumes(*c):
		// The target may have lost its link, and the handover would wait for it in vain if it
		// could not reconnect. A full resynchronization is not possible: it would not end,
		// because the stream does not advance.
	case n.handover.state != handoverNone:
		return errSyncFailover
	case c.Failover && (n.order != orderNone || !n.f.whole.Load()):
		return errSyncNoLink
	case n.replica && !c.Failover && !n.f.streaming.Load():
		return errSyncNoLink
	}
	return ""
}

// hasAllOf reports whether the state is that of the Redis that hands over by c, up to its last
// byte.
func (n *Node) hasAllOf(c *protocol.PSync) bool {
	id, offset, settled := n.redisPosition()
	return settled && id == c.ReplID && offset+1 == c.Offset
}

// serveDeferred answers the PSYNC calls that were left for Run. Only Run calls it.
func (n *Node) serveDeferred() {
	n.mu.Lock()
	deferred := n.deferred
	n.deferred = nil
	n.mu.Unlock()
	for _, l := range deferred {
		l.settle(n.syncDeferred(&l.call))
	}
}

// syncDeferred answers c, a PSYNC that was left for Run. For a FAILOVER it promotes this node
// first. Otherwise it begins the stream of a primary if there is none.
func (n *Node) syncDeferred(c *protocol.PSync) ([]byte, transport.Pump, resp.Error) {
	n.mu.Lock()
	err := n.syncRefused(c)
	n.mu.Unlock()
	if err != "" {
		return nil, nil, err
	}
	switch {
	case c.Failover:
		n.o.Log.Info("becoming the primary at the request of the old primary (FAILOVER)", "from", c.Addr)
		n.stopLinks()
		if c.Capa&protocol.CapaCell1 != 0 {
			n.awaitConfirmation(c.Client)
		}
		n.promote()
	case !n.following:
		if err := n.tapIn(); err != nil {
			n.o.Log.Error("PSYNC refused: the log is not available", "error", err)
			return nil, nil, errSyncNoLink
		}
	}
	return n.answer(c)
}

// answer begins to serve the replica that has sent c. The stream must be running. While the log of
// a primary cannot be written, answer refuses the replica. Each attempt to repair the log begins
// another history, so a full resynchronization would not end. But the replica would have discarded
// its own state for it, which may be the only other complete copy.
func (n *Node) answer(c *protocol.PSync) ([]byte, transport.Pump, resp.Error) {
	if t := n.tap.Load(); t != nil && !c.Failover && t.log.Refuses() {
		return nil, nil, errSyncFault
	}
	if c.Capa&protocol.CapaCell1 == 0 {
		return n.o.ServeRedis(*c)
	}
	reply, p := n.o.Source.PSync(*c)
	return reply, p, ""
}

// refuseDeferred refuses the PSYNC calls that were left for Run, because Run ends.
func (n *Node) refuseDeferred() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.deferred {
		l.settle(nil, nil, errSyncEnding)
	}
	n.deferred = nil
}

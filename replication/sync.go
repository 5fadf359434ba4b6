package replication

import (
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// The answers to PSYNC of a node that cannot serve a replica, in the words of Redis. A
// replica tries again after NOMASTERLINK.
const (
	errSyncMaster   resp.Error = "ERR PSYNC FAILOVER can't be sent to a master."
	errSyncReplID   resp.Error = "ERR PSYNC FAILOVER replid must match my replid."
	errSyncFailover resp.Error = "NOMASTERLINK Can't SYNC while failing over"
	errSyncNoLink   resp.Error = "NOMASTERLINK Can't SYNC while not connected with my master"
	errSyncFault    resp.Error = "NOMASTERLINK Can't SYNC while the log cannot be written"
	errSyncRedis    resp.Error = "ERR This server has no replicas but servers of its own kind"
	errSyncEnding   resp.Error = "NOMASTERLINK Can't SYNC while the server is shutting down"
)

// PSync implements env.Node. What needs the world to be stopped is left for Run: then the
// answer to PSYNC is the first that the pump gives.
func (n *Node) PSync(c protocol.PSync) (reply []byte, p transport.Pump, err resp.Error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.syncRefused(&c); err != "" {
		return nil, nil, err
	}
	if !c.Failover && (n.replica || n.tap.Load() != nil) {
		return n.answer(&c)
	}
	late := &latePump{call: c}
	n.late = append(n.late, late)
	n.nudge()
	return nil, late, ""
}

// syncRefused says why a replica cannot be served now. The caller holds mu.
func (n *Node) syncRefused(c *protocol.PSync) resp.Error {
	if c.Failover && !n.replica && c.ReplID == n.o.Source.History().ID2 && c.ReplID != "" {
		// This node has taken over, and the answer that said so was lost. If it were refused now
		// there would be two primaries.
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
		// The target may have lost its link, and would be waited for in vain without another one. The
		// stream stands still, so that a full sync would not end.
	case n.handover.state != handoverNone:
		return errSyncFailover
	case c.Failover && (n.order != orderNone || !n.f.whole.Load()):
		return errSyncNoLink
	case n.replica && !c.Failover && !n.f.streaming.Load():
		return errSyncNoLink
	}
	return ""
}

// hasAllOf reports whether the Redis that hands over is the one that the state is of.
func (n *Node) hasAllOf(c *protocol.PSync) bool {
	id, offset, settled := n.redisPosition()
	return settled && id == c.ReplID && offset+1 == c.Offset
}

// serveLate answers the calls of PSYNC that were left for Run.
func (n *Node) serveLate() {
	n.mu.Lock()
	late := n.late
	n.late = nil
	n.mu.Unlock()
	for _, l := range late {
		l.settle(n.syncLate(&l.call))
	}
}

func (n *Node) syncLate(c *protocol.PSync) ([]byte, transport.Pump, resp.Error) {
	n.mu.Lock()
	err := n.syncRefused(c)
	n.mu.Unlock()
	if err != "" {
		return nil, nil, err
	}
	switch {
	case c.Failover:
		n.o.Log.Info("this node takes over, as the primary asks", "from", c.Addr)
		n.stopLinks()
		if c.Capa&protocol.CapaCell1 != 0 {
			n.awaitConfirmation(c.Client)
		}
		n.promote()
	case !n.following:
		if err := n.tapIn(); err != nil {
			n.o.Log.Error("a replica cannot be served", "error", err)
			return nil, nil, errSyncNoLink
		}
	}
	return n.answer(c)
}

// answer begins to serve a replica. The stream runs. While the log of a primary cannot be
// written it does not: each attempt to mend it begins another history. A full sync would not
// get to its end then, and the replica would have given up the only other whole state for it.
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

// refuseLate answers them when Run ends.
func (n *Node) refuseLate() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.late {
		l.settle(nil, nil, errSyncEnding)
	}
	n.late = nil
}

// Package replicationtest provides an [env.Node] without a network, for tests of commands and
// sessions. The node sends a stream to its replicas, records their acknowledgements, and wakes the
// clients that wait for acknowledgements.
package replicationtest

import (
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// ID is the replication ID of every Node.
const ID = "1111111111111111111111111111111111111111"

// ErrCut is the error with which Cut ends the streams of replicas.
var ErrCut = errors.New("cut by the test")

// Node is a primary, or a replica after ReplicaOf. Any goroutine may call its methods.
type Node struct {
	mu        sync.Mutex
	role      protocol.Role            // the role of the node, to which the method Role adds the replicas; guarded by mu
	stream    []byte                   // all bytes that Write has received; guarded by mu
	replicas  map[int64]*Replica       // the replicas by the ID of their client; guarded by mu
	waiters   map[transport.Peer]bool  // the clients that the next ACK wakes; guarded by mu
	handovers []protocol.Failover      // the calls of Failover; guarded by mu
	counts    protocol.Counts          // the counts that Counts returns; guarded by mu
	calls     map[int64]protocol.PSync // the last PSYNC of each client, by its ID; guarded by mu
}

// New returns a primary without replicas.
func New() *Node {
	return &Node{replicas: make(map[int64]*Replica), waiters: make(map[transport.Peer]bool), calls: make(map[int64]protocol.PSync)}
}

// Replica is a replica of the node. It is also the pump that sends the stream.
type Replica struct {
	node   *Node
	call   protocol.PSync
	at     int    // number of bytes that were sent; guarded by node.mu
	ack    uint64 // offset of the last ACK; guarded by node.mu
	cut    bool   // whether Cut has ended the stream; guarded by node.mu
	closed int    // number of calls of Closed; guarded by node.mu
}

// Write appends b to the stream and wakes all replicas.
func (n *Node) Write(b []byte) {
	n.mu.Lock()
	n.stream = append(n.stream, b...)
	peers := n.peers()
	n.mu.Unlock()
	for _, p := range peers {
		p.Wake()
	}
}

// peers returns the peers of all replicas. The caller holds mu.
func (n *Node) peers() (peers []transport.Peer) {
	for _, r := range n.replicas {
		peers = append(peers, r.call.Peer)
	}
	return peers
}

// Cut ends the streams of all replicas with ErrCut.
func (n *Node) Cut() {
	n.mu.Lock()
	for _, r := range n.replicas {
		r.cut = true
	}
	peers := n.peers()
	n.mu.Unlock()
	for _, p := range peers {
		p.Wake()
	}
}

// Calls returns the last answered PSYNC call of each client, in the order of the IDs of the
// clients.
func (n *Node) Calls() (calls []protocol.PSync) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.calls {
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(a, b protocol.PSync) int { return int(a.Client - b.Client) })
	return calls
}

// Handovers returns the calls of Failover that were accepted.
func (n *Node) Handovers() []protocol.Failover {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.handovers)
}

// SetState sets the state of the link of a replica to its primary, such as "connected".
func (n *Node) SetState(state string) {
	n.mu.Lock()
	n.role.State = state
	n.mu.Unlock()
}

// ReplicaOf implements [env.Node].
func (n *Node) ReplicaOf(host, port string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, _ := strconv.Atoi(port) // there is no error, because the command has checked the port
	n.role = protocol.Role{Replica: true, Host: host, Port: at, State: "connect", Offset: -1}
}

// Promote implements [env.Node].
func (n *Node) Promote(done func()) {
	n.mu.Lock()
	n.role = protocol.Role{}
	n.mu.Unlock()
	if done != nil {
		done()
	}
}

// PSync implements [env.Node]. A replica that names the replication ID, and an offset in the
// stream, continues there. Any other replica begins at the start of the stream.
func (n *Node) PSync(c protocol.PSync) ([]byte, transport.Pump, resp.Error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.role.Replica && n.role.State != "connected" {
		return nil, nil, "NOMASTERLINK Can't SYNC while not connected with my master"
	}
	r := &Replica{node: n, call: c}
	n.replicas[c.Client], n.calls[c.Client] = r, c
	if c.ReplID == ID && c.Offset >= 1 && c.Offset <= int64(len(n.stream))+1 {
		r.at = int(c.Offset) - 1
		n.counts.SyncPartialOK++
		return []byte("+CONTINUE " + ID + " cell1\r\n"), r, ""
	}
	if c.ReplID != "?" {
		n.counts.SyncPartialErr++
	}
	n.counts.SyncFull++
	return []byte("+FULLRESYNC " + ID + " 0 cell1\r\n"), r, ""
}

// Fill implements [transport.Pump].
func (r *Replica) Fill(out []byte, most int) (filled []byte, more bool, err error) {
	r.node.mu.Lock()
	defer r.node.mu.Unlock()
	if r.cut {
		return out, false, ErrCut
	}
	rest := r.node.stream[r.at:]
	n := min(len(rest), most)
	r.at += n
	r.node.counts.BytesOut += int64(n)
	return append(out, rest[:n]...), n < len(rest), nil
}

// Closed implements [transport.Pump].
func (r *Replica) Closed() {
	r.node.mu.Lock()
	defer r.node.mu.Unlock()
	if r.closed++; r.closed > 1 {
		panic("replicationtest: a pump was closed twice")
	}
	delete(r.node.replicas, r.call.Client)
}

// Acknowledge implements [env.Node].
func (n *Node) Acknowledge(id int64, says protocol.Ack) {
	n.mu.Lock()
	var woken []transport.Peer
	if r := n.replicas[id]; r != nil && says.Applied > r.ack {
		r.ack = says.Applied
		for p := range n.waiters {
			woken = append(woken, p)
		}
		clear(n.waiters)
	}
	n.mu.Unlock()
	for _, p := range woken {
		p.Wake()
	}
}

// Await implements [env.Node]. position is an offset of the stream.
func (n *Node) Await(least int, position uint64, p transport.Peer) (acked int, o transport.Outcome) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if acked = n.acked(position); acked >= least {
		return acked, transport.Kept
	}
	n.waiters[p] = true
	return acked, transport.Pending
}

// Acked implements [env.Node].
func (n *Node) Acked(position uint64) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.acked(position)
}

// acked returns the number of replicas that have acknowledged position. The caller holds mu.
func (n *Node) acked(position uint64) (count int) {
	for _, r := range n.replicas {
		if r.ack >= position {
			count++
		}
	}
	return count
}

// EnoughReplicas implements [env.Node]. It returns true, since no replica is required.
func (n *Node) EnoughReplicas() bool { return true }

// Failover implements [env.Node].
func (n *Node) Failover(c protocol.Failover) resp.Error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.Abort {
		return "ERR No failover in progress."
	}
	err := c.Refused(n.role.Replica, len(n.replicas))
	if err == "" {
		n.handovers = append(n.handovers, c)
	}
	return err
}

// Role implements [env.Node].
func (n *Node) Role() protocol.Role {
	n.mu.Lock()
	defer n.mu.Unlock()
	role := n.role
	if !role.Replica {
		role.Offset = int64(len(n.stream))
	}
	for _, r := range n.replicas {
		role.Replicas = append(role.Replicas, protocol.Replica{Host: r.call.IP, Port: strconv.Itoa(r.call.Port), Offset: int64(r.ack)})
	}
	return role
}

// Info implements [env.Node].
func (n *Node) Info() []protocol.Field {
	role := n.Role()
	if role.Replica {
		return []protocol.Field{{Name: "role", Value: "slave"}, {Name: "master_host", Value: role.Host}}
	}
	info := protocol.PrimaryInfo{ReplID: ID, Offset: role.Offset}
	for i, r := range role.Replicas {
		info.Replicas = append(info.Replicas, protocol.Field{Name: "slave" + strconv.Itoa(i), Value: "ip=" + r.Host + ",port=" + r.Port})
	}
	return info.Fields()
}

// Counts implements [env.Node].
func (n *Node) Counts() protocol.Counts {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts
}

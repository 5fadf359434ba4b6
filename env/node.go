package env

import (
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Node is the server's side of replication: the server is a primary, or a replica of another
// server. It has a part for each use, so that a command can ask for the part that it needs. Any
// goroutine may call the methods. No method blocks: work that takes time continues in the
// background.
type Node interface {
	NodeRole
	NodeState
	ReplicaFeed
	Acknowledgements
}

// NodeRole changes the role of a [Node].
type NodeRole interface {
	// ReplicaOf makes the node a replica of the server at host and port (REPLICAOF). It returns at
	// once, and changes nothing if that server is the present primary.
	ReplicaOf(host, port string)
	// Promote makes the node a primary (REPLICAOF NO ONE). It returns at once, and changes nothing on
	// a primary. done is called when the node accepts changes, or when the promotion was
	// superseded; done may be nil, and must not block.
	Promote(done func())
	// Failover begins a failover to a replica, or aborts one, as c says. The result is the error
	// reply, or "" on success; then the failover continues in the background.
	Failover(c protocol.Failover) resp.Error
}

// NodeState describes a [Node].
type NodeState interface {
	// Role returns the reply of ROLE.
	Role() protocol.Role
	// Info returns the fields of INFO replication, in the order of Redis.
	Info() []protocol.Field
	// Counts returns the figures about replication that INFO stats shows.
	Counts() protocol.Counts
}

// ReplicaFeed serves the replicas of a [Node].
type ReplicaFeed interface {
	// PSync begins to serve a replica that has sent PSYNC. If err is not empty, err is the reply,
	// and p is nil. Otherwise reply is the whole line of the reply with its CRLF, and p supplies
	// the stream after that line. p is nil if the line tells the replica to try again later.
	PSync(c protocol.PSync) (reply []byte, p transport.Pump, err resp.Error)
	// Acknowledge records that the replica with the client ID id has acknowledged a (REPLCONF ACK).
	// IDs of clients that are not replicas are ignored.
	Acknowledge(id int64, a protocol.Ack)
}

// Acknowledgements gives access to the acknowledgements of the replicas of a [Node].
type Acknowledgements interface {
	// Await returns the number of replicas that have acknowledged everything up to position, and an
	// outcome that says whether there are at least n. If the outcome is Pending, p is woken when
	// the number may have changed.
	Await(n int, position uint64, p transport.Peer) (acked int, o transport.Outcome)
	// Acked returns the number of replicas that have acknowledged everything up to position.
	Acked(position uint64) int
	// EnoughReplicas reports whether at least min-replicas-to-write replicas have sent an
	// acknowledgement within the last min-replicas-max-lag seconds. It is called before each
	// change, so it must be quick.
	EnoughReplicas() bool
}

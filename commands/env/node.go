package env

import (
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Node is the server's side of replication: a primary, or a replica of another server. Its
// methods may be called from any goroutine. None blocks: work that takes time continues in the
// background.
type Node interface {
	// ReplicaOf makes the node a replica of the server at host and port (REPLICAOF). It returns at
	// once, and changes nothing if that server is the present primary.
	ReplicaOf(host, port string)
	// Promote makes the node a primary (REPLICAOF NO ONE). It returns at once, and changes nothing on
	// a primary. done is called when the node accepts changes, or when the promotion was
	// superseded; done may be nil, and must not block.
	Promote(done func())
	// PSync begins to serve a replica (PSYNC). reply is the whole line with its CRLF. If err is not
	// empty, it is the reply, and p is nil. Otherwise p supplies what follows the line; p is nil
	// if the line says that the replica has to try again.
	PSync(c protocol.PSync) (reply []byte, p transport.Pump, err resp.Error)
	// Acknowledge records what the replica with that client ID acknowledges (REPLCONF ACK). The IDs of
	// other clients are ignored.
	Acknowledge(id int64, a protocol.Ack)
	// Await returns how many replicas have acknowledged everything up to position, and whether n
	// have. While the outcome is Pending, p is woken when that may have changed.
	Await(n int, position uint64, p transport.Peer) (acked int, o transport.Outcome)
	// Acked returns how many replicas have acknowledged everything up to position.
	Acked(position uint64) int
	// EnoughReplicas reports whether at least min-replicas-to-write replicas have acknowledged
	// something within min-replicas-max-lag. It is called for each change.
	EnoughReplicas() bool
	// Failover begins a failover to a replica, or aborts one. The empty error stands for OK: the
	// failover continues in the background.
	Failover(c protocol.Failover) resp.Error
	// Role returns what ROLE replies.
	Role() protocol.Role
	// Info returns the section replication of INFO, in the order of Redis.
	Info() []protocol.Field
	// Counts returns the figures about replication in the section stats of INFO.
	Counts() protocol.Counts
}

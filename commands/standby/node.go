package standby

import (
	"time"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Node is a server as a part of replication: a primary, or a replica of another server. Any
// goroutine may call it. No method blocks: whatever takes time goes on beside.
type Node interface {
	// Follow makes the node a replica of the server at host and port, and Lead makes it a
	// primary. Both return at once. Follow of the present primary and Lead of a primary
	// change nothing. Lead calls done once the node accepts changes, or will not for now;
	// done may be nil, and must not block.
	Follow(host, port string)
	Lead(done func())
	// Sync begins to serve a replica (PSYNC). reply is the whole line with its CRLF. If err is
	// not empty, that is the reply, and p is nil. Otherwise p is what the replica is sent
	// behind the line, or nil if the line refuses it for now.
	Sync(c SyncCall) (reply []byte, p transport.Pump, err resp.Error)
	// Hear takes what the replica with that client id says of itself. Ids that are no
	// replica's are passed over.
	Hear(id int64, r ReplicaSays)
	// Await asks whether n replicas have acknowledged everything up to position, and returns
	// how many have. While the outcome is Pending, p is woken when that may have changed.
	Await(n int, position uint64, p transport.Peer) (acked int, o transport.Outcome)
	// Acked is how many replicas have acknowledged everything up to position.
	Acked(position uint64) int
	// EnoughReplicas reports whether as many replicas as min-replicas-to-write have acknowledged
	// something within min-replicas-max-lag. It is asked at each change.
	EnoughReplicas() bool
	// Failover begins or aborts a handover to a replica. The empty error stands for OK: the
	// handover goes on beside.
	Failover(c FailoverCall) resp.Error
	// Role is what ROLE says.
	Role() Role
	// Info is the whole section replication of INFO, in the order of Redis.
	Info() []Field
	// Counts are the figures of INFO stats.
	Counts() Counts
}

// Capa is a set of what a replica can read (REPLCONF capa).
type Capa uint8

// The capabilities. Others that a replica names are passed over, as in Redis.
const (
	CapaEOF    Capa = 1 << iota // a snapshot of unknown length
	CapaPSYNC2                  // another replication id in +CONTINUE
	CapaCell1                   // the stream of this server, version 1
)

// SyncCall is a PSYNC with what the replica has said by REPLCONF before.
type SyncCall struct {
	Client int64          // its id
	Peer   transport.Peer // whom to wake when there is something to send
	ReplID string         // the history it knows, "?" for none
	// Offset is the first byte that the replica lacks, -1 if it has nothing.
	Offset   int64
	Failover bool // it asks this node to take over
	Port     int  // where it listens, 0 if it has not said
	IP       string
	Capa     Capa
	DataSet  string // the id of the one it has, "?" if it is unknown, "" if it has not said
	Addr     string // where its connection comes from, as CLIENT LIST shows it
	Version  string // what it says it is, "" if it has not said
}

// ReplicaSays is a REPLCONF of a replica that is being served. Kind tells which fields count.
type ReplicaSays struct {
	Ack     uint64 // every byte before this offset is applied
	Fack    uint64 // every byte before this offset is on its disk; counts if HasFack
	HasFack bool
}

// FailoverCall is a FAILOVER whose words are checked.
type FailoverCall struct {
	Host, Port string // the replica that takes over; both empty for the best one
	Force      bool   // go on when Timeout is over
	Abort      bool   // end the handover that is under way; nothing else counts
	Timeout    time.Duration
}

// The errors of FAILOVER, in the words of Redis.
const (
	errFailoverReplica resp.Error = "ERR FAILOVER is not valid when server is a replica."
	errFailoverAlone   resp.Error = "ERR FAILOVER requires connected replicas."
	errFailoverForce   resp.Error = "ERR FAILOVER with force option requires both a timeout and target HOST and IP."
)

// Refused says why a server that is a replica or not, and has so many, cannot begin the handover,
// in the order of Redis; empty if it can.
func (c FailoverCall) Refused(replica bool, replicas int) resp.Error {
	switch {
	case replica:
		return errFailoverReplica
	case replicas == 0:
		return errFailoverAlone
	case c.Force && (c.Timeout <= 0 || c.Host == ""):
		return errFailoverForce
	}
	return ""
}

// Role is what a node is at the moment.
type Role struct {
	Replica bool
	Host    string // of the primary; empty unless Replica
	Port    int
	State   string // connect, connecting, sync or connected; empty unless Replica
	// Offset is the last byte of the stream that is sent or, on a replica, applied; -1 while
	// that is unknown.
	Offset   int64
	Replicas []ReplicaAt
}

// ReplicaAt is a replica that the node serves.
type ReplicaAt struct {
	Host, Port string
	Offset     int64 // acknowledged
}

// Counts are how replicas were served since the start.
type Counts struct {
	SyncFull, SyncPartialOK, SyncPartialErr int64
	BytesIn, BytesOut                       int64 // of streams
}

// Field is a line of INFO.
type Field struct{ Name, Value string }

package protocol

import (
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Capa is a set of what a replica can read (REPLCONF capa).
type Capa uint8

// The capabilities. Others that a replica names are passed over, as in Redis.
const (
	CapaEOF    Capa = 1 << iota // a snapshot of unknown length
	CapaPSYNC2                  // another replication id in +CONTINUE
	CapaCell1                   // the stream of this server, version 1
)

// PSync is a PSYNC with what the replica has said by REPLCONF before.
type PSync struct {
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

// Applied is a REPLCONF of a replica that is being served. Kind tells which fields count.
type Ack struct {
	Applied   uint64 // every byte before this offset is applied
	Synced    uint64 // every byte before this offset is on its disk; counts if HasFack
	HasSynced bool
}

// Failover is a FAILOVER whose words are checked.
type Failover struct {
	Host, Port string // the replica that takes over; both empty for the best one
	Force      bool   // go on when Timeout is over
	Abort      bool   // end the handover that is under way; nothing else counts
	Timeout    time.Duration
}

// The errors of FAILOVER, in the words of Redis.
const (
	errFailoverReplica    resp.Error = "ERR FAILOVER is not valid when server is a replica."
	errFailoverNoReplicas resp.Error = "ERR FAILOVER requires connected replicas."
	errFailoverForce      resp.Error = "ERR FAILOVER with force option requires both a timeout and target HOST and IP."
)

// Refused says why a server that is a replica or not, and has so many, cannot begin the handover,
// in the order of Redis; empty if it can.
func (c Failover) Refused(replica bool, replicas int) resp.Error {
	switch {
	case replica:
		return errFailoverReplica
	case replicas == 0:
		return errFailoverNoReplicas
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
	Replicas []Replica
}

// Replica is a replica that the node serves.
type Replica struct {
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

// PrimaryInfo is what the section replication of INFO says of a primary beside its replicas.
type PrimaryInfo struct {
	ReplID, ReplID2 string // ReplID2 is empty if there is none
	// Offset is the last byte of the stream. SecondOffset is up to where ReplID2 counts, which
	// matters only with one.
	Offset, SecondOffset int64
	FailoverState        string // empty stands for no-failover
	BacklogActive        bool
	BacklogSize          int64
	BacklogFrom, Backlog int64 // the first byte in the backlog, and how many are there
	Replicas             []Field
}

// Fields returns the lines in the order of Redis.
func (p PrimaryInfo) Fields() []Field {
	fields := append([]Field{{"role", "master"}, {"connected_slaves", strconv.Itoa(len(p.Replicas))}}, p.Replicas...)
	state, second, active := p.FailoverState, p.SecondOffset, "0"
	if state == "" {
		state = "no-failover"
	}
	replID2 := p.ReplID2
	if replID2 == "" {
		replID2, second = strings.Repeat("0", 40), -1
	}
	if p.BacklogActive {
		active = "1"
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return append(fields,
		Field{"master_failover_state", state},
		Field{"master_replid", p.ReplID}, Field{"master_replid2", replID2},
		Field{"master_repl_offset", number(p.Offset)}, Field{"second_repl_offset", number(second)},
		Field{"repl_backlog_active", active}, Field{"repl_backlog_size", number(p.BacklogSize)},
		Field{"repl_backlog_first_byte_offset", number(p.BacklogFrom)}, Field{"repl_backlog_histlen", number(p.Backlog)})
}

package protocol

import (
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Capa is a set of capabilities of a replica (REPLCONF capa).
type Capa uint8

// These are the capabilities that this server knows. Other capabilities that a replica names are
// ignored, as in Redis.
const (
	CapaEOF    Capa = 1 << iota // the replica accepts an RDB whose length is not known in advance
	CapaPSYNC2                  // the replica accepts a new replication ID in +CONTINUE
	CapaCell1                   // the replica accepts the stream of this server, version 1
)

// PSync is a PSYNC call, together with what the replica has sent by REPLCONF before.
type PSync struct {
	Client int64          // ID of the replica in CLIENT LIST
	Peer   transport.Peer // connection of the replica, which is woken when there is something to send
	ReplID string         // ID of the history that the replica has; "?" if it has none
	// Offset is the number of the first byte that the replica lacks, counted from 1; -1 if the
	// replica has no history.
	Offset   int64
	Failover bool // whether the replica asks this node to take over
	Port     int  // the port at which the replica listens; 0 if it has not sent it
	IP       string
	Capa     Capa
	DataSet  string // ID of the replica's data set; "?" if it is unknown, "" if the replica has not sent one
	Tzdata   string // the replica's release of tzdata, such as "2025c"; "" if the replica has not sent one
	Addr     string // address of the replica's connection, as CLIENT LIST shows it
	Version  string // version of the replica; "" if the replica has not sent one
}

// Ack is a REPLCONF ACK of a replica that is being served.
type Ack struct {
	Applied   uint64 // offset before which the replica has applied all bytes
	Synced    uint64 // offset before which all bytes are durable on the replica; valid if HasSynced is true
	HasSynced bool
}

// Failover is a FAILOVER call whose arguments were checked.
type Failover struct {
	Host, Port string // address of the replica that takes over; both are "" for any replica
	Force      bool   // whether to proceed when Timeout has passed, even if the replica has not caught up
	Abort      bool   // whether to abort the failover that is in progress; the other fields are ignored then
	Timeout    time.Duration
}

// These are the error replies of FAILOVER, with the texts of Redis.
const (
	errFailoverReplica    resp.Error = "ERR FAILOVER is not valid when server is a replica."
	errFailoverNoReplicas resp.Error = "ERR FAILOVER requires connected replicas."
	errFailoverForce      resp.Error = "ERR FAILOVER with force option requires both a timeout and target HOST and IP."
)

// Refused returns the error if a server cannot begin the failover c, "" if it can. replica says
// that the server is a replica, and replicas is the number of replicas that it has. The checks
// have the same order as in Redis.
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

// Role is the reply of ROLE: the present role of a node.
type Role struct {
	Replica bool
	Host    string // host of the primary; "" unless Replica is true
	Port    int
	State   string // "connect", "connecting", "sync" or "connected"; "" unless Replica is true
	// Offset is the number of the last byte of the stream that was written or, on a replica,
	// applied. It is -1 while that is unknown.
	Offset   int64
	Replicas []Replica
}

// Replica is a replica that the node serves, in [Role].
type Replica struct {
	Host, Port string
	Offset     int64 // the offset that the replica has acknowledged
}

// Counts has the counters of INFO about replication since the start. BytesIn and BytesOut count
// the bytes of streams.
type Counts struct {
	SyncFull, SyncPartialOK, SyncPartialErr int64
	BytesIn, BytesOut                       int64 // numbers of bytes of streams
}

// Field is a line of INFO: its name and its value.
type Field struct{ Name, Value string }

// PrimaryInfo has the values that the section replication of INFO shows of a primary: its
// history, its backlog and its replicas.
type PrimaryInfo struct {
	ReplID, ReplID2 string // the replication ID and the previous one; ReplID2 is "" if there is none
	// Offset is the number of the last byte of the stream. SecondOffset is second_repl_offset:
	// bytes with larger numbers do not belong to ReplID2. It is ignored if ReplID2 is "".
	Offset, SecondOffset int64
	FailoverState        string // the state of a FAILOVER as INFO shows it; "" stands for no-failover
	BacklogActive        bool
	BacklogSize          int64
	BacklogFrom, Backlog int64 // number of the first byte in the backlog, and length of the backlog in bytes
	Replicas             []Field
}

// Fields returns the lines of INFO, in the order of Redis.
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

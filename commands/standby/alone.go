package standby

import (
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// ErrAlone is what a server without replication answers to REPLICAOF, PSYNC and FAILOVER.
const ErrAlone resp.Error = "ERR This server does not replicate: its keys are in the store of --store, which replicates them itself"

// Alone is the node of a server that does not replicate, such as one whose keys are in an
// engine (--store): a primary without a replica for ever. The zero value is ready.
type Alone struct {
	// RunID stands for the replication id, which INFO shows, 40 hexadecimal digits.
	RunID string
}

// Replicates reports whether n can have replicas and become one.
func Replicates(n Node) bool {
	_, alone := n.(Alone)
	return n != nil && !alone
}

// Follow implements [Node]. REPLICAOF refuses before: see [Replicates].
func (Alone) Follow(string, string) {}

// Lead implements [Node]: it is one.
func (Alone) Lead(done func()) {
	if done != nil {
		done()
	}
}

// Sync implements [Node].
func (Alone) Sync(SyncCall) ([]byte, transport.Pump, resp.Error) { return nil, nil, ErrAlone }

// Hear implements [Node].
func (Alone) Hear(int64, ReplicaSays) {}

// Await implements [Node]. There is never a replica that could acknowledge more than nothing.
func (Alone) Await(n int, _ uint64, _ transport.Peer) (int, transport.Outcome) {
	if n <= 0 {
		return 0, transport.Kept
	}
	return 0, transport.Pending
}

// Acked implements [Node].
func (Alone) Acked(uint64) int { return 0 }

// EnoughReplicas implements [Node].
func (Alone) EnoughReplicas() bool { return true }

// Failover implements [Node].
func (Alone) Failover(c FailoverCall) resp.Error {
	if c.Abort {
		return "ERR No failover in progress."
	}
	return ErrAlone
}

// Role implements [Node].
func (Alone) Role() Role { return Role{} }

// Info implements [Node].
func (a Alone) Info() []Field {
	return PrimaryInfo{ReplID: a.RunID}.Fields()
}

// Counts implements [Node].
func (Alone) Counts() Counts { return Counts{} }

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

package env

import (
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// errStandalone is the reply of a server without replication to REPLICAOF, PSYNC and FAILOVER. A reason follows.
const errStandalone resp.Error = "ERR This server does not replicate: "

// Standalone is the [Node] of a server that does not replicate, such as one with --store. It is a
// primary that never has a replica. The zero value is ready for use.
type Standalone struct {
	// RunID is the replication ID that INFO shows, 40 hexadecimal digits.
	RunID string
	// Manual says that the server does not replicate because its clock is manual, and not because of --store.
	Manual bool
}

// refusal returns the reply to commands that need replication.
func (s Standalone) refusal() resp.Error {
	if s.Manual {
		return errStandalone + "its clock is manual, and replicas would need one that runs"
	}
	return errStandalone + "its keys are in the store of --store, which replicates them itself"
}

// Refusal returns the reply to commands that need replication, or "" if n takes part in it: if it can have replicas and
// become a replica. A Standalone does not.
func Refusal(n Node) resp.Error {
	if s, standalone := n.(Standalone); standalone {
		return s.refusal()
	}
	return ""
}

// ReplicaOf implements [Node] and does nothing.
func (Standalone) ReplicaOf(string, string) {}

// Promote implements [Node]. It calls done at once, because the server is a primary already.
func (Standalone) Promote(done func()) {
	if done != nil {
		done()
	}
}

// PSync implements [Node]. It always returns an error.
func (s Standalone) PSync(protocol.PSync) ([]byte, transport.Pump, resp.Error) {
	return nil, nil, s.refusal()
}

// Acknowledge implements [Node] and does nothing.
func (Standalone) Acknowledge(int64, protocol.Ack) {}

// Await implements [Node]. No replica ever acknowledges anything, so the outcome is Pending unless
// n is 0 or less.
func (Standalone) Await(n int, _ uint64, _ transport.Peer) (int, transport.Outcome) {
	if n <= 0 {
		return 0, transport.Kept
	}
	return 0, transport.Pending
}

// Acked implements [Node]. It returns 0.
func (Standalone) Acked(uint64) int { return 0 }

// EnoughReplicas implements [Node]. It returns true, so changes are never refused.
func (Standalone) EnoughReplicas() bool { return true }

// Failover implements [Node]. It always returns an error.
func (s Standalone) Failover(c protocol.Failover) resp.Error {
	if c.Abort {
		return "ERR No failover in progress."
	}
	return s.refusal()
}

// Role implements [Node]. It returns the zero value, the role of a primary without replicas.
func (Standalone) Role() protocol.Role { return protocol.Role{} }

// Info implements [Node]. It returns the fields of a primary without replicas.
func (s Standalone) Info() []protocol.Field {
	return protocol.PrimaryInfo{ReplID: s.RunID}.Fields()
}

// Counts implements [Node]. It returns zeros.
func (Standalone) Counts() protocol.Counts { return protocol.Counts{} }

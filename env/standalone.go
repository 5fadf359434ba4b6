package env

import (
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// ErrStandalone is the reply of a server without replication to REPLICAOF, PSYNC and FAILOVER.
const ErrStandalone resp.Error = "ERR This server does not replicate: its keys are in the store of --store, which replicates them itself"

// Standalone is the [Node] of a server that does not replicate, such as one with --store. It is a
// primary that never has a replica. The zero value is ready for use.
type Standalone struct {
	// RunID is the replication ID that INFO shows, 40 hexadecimal digits.
	RunID string
}

// Replicates reports whether n takes part in replication: whether it can have replicas and become a
// replica. It is false for nil and for a Standalone.
func Replicates(n Node) bool {
	_, standalone := n.(Standalone)
	return n != nil && !standalone
}

// ReplicaOf implements [Node] and does nothing.
func (Standalone) ReplicaOf(string, string) {}

// Promote implements [Node]. It calls done at once, because the server is a primary already.
func (Standalone) Promote(done func()) {
	if done != nil {
		done()
	}
}

// PSync implements [Node]. It always returns [ErrStandalone].
func (Standalone) PSync(protocol.PSync) ([]byte, transport.Pump, resp.Error) {
	return nil, nil, ErrStandalone
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
func (Standalone) Failover(c protocol.Failover) resp.Error {
	if c.Abort {
		return "ERR No failover in progress."
	}
	return ErrStandalone
}

// Role implements [Node]. It returns the zero value, the role of a primary without replicas.
func (Standalone) Role() protocol.Role { return protocol.Role{} }

// Info implements [Node]. It returns the fields of a primary without replicas.
func (s Standalone) Info() []protocol.Field {
	return protocol.PrimaryInfo{ReplID: s.RunID}.Fields()
}

// Counts implements [Node]. It returns zeros.
func (Standalone) Counts() protocol.Counts { return protocol.Counts{} }

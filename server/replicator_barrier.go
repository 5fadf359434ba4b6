package server

import "github.com/cellserver/cellserver/transport"

// await holds a reply back whose effect is kept here, until as many replicas have it as
// repl-ack-replies says. It is lost to the client if they have not after repl-ack-timeout.
func (r *replicator) await(position uint64, p transport.Peer) transport.Outcome {
	if r == nil {
		return transport.Kept
	}
	n := int(r.replies.Load())
	if n == 0 {
		return transport.Kept
	}
	if position != 0 && position <= r.forgone.Load() {
		return transport.Lost
	}
	_, is := r.node.Await(n, position, p)
	if is == transport.Pending && position <= r.overdue.Load() {
		return transport.Lost
	}
	return is
}

// forgo ends the waits for replicas of a primary that is one no longer: changes that were not answered
// yet may be gone when it follows another. If it leads again, its replicas acknowledge what it has then.
func (r *replicator) forgo() {
	if l, err := r.s.persistence.Log(); err == nil {
		r.forgone.Store(l.Position())
		r.source.WakeWaiting()
	}
}

// putInForce takes over what the configuration says by now. Those who wait ask again.
func (r *replicator) putInForce() {
	if r == nil {
		return
	}
	if n := int32(r.s.config.Number("repl-ack-replies")); r.replies.Swap(n) != n {
		r.source.WakeWaiting()
	}
	r.node.PutInForce()
}

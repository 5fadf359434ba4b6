package server

import (
	"time"

	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/replication/protocol"
)

// nodeState is the state of replication at one reading of the figures. good is the number of
// replicas that count for min-replicas-to-write. wanted is min-replicas-to-write, or 0 if that does
// not apply. refuses says that this server is a replica that has refused the data set of its
// primary. lag is the time by which a replica is behind its primary, valid if lagKnown is true.
type nodeState struct {
	protocol.Role
	replicas     []replication.ReplicaInfo
	good, wanted int
	refuses      bool
	lag          time.Duration
	lagKnown     bool
}

// linkUp reports whether this server is a replica that gets the changes of its primary.
func (n *nodeState) linkUp() bool { return n.State == "connected" }

// replicationState returns the present state of replication. A server without replication has the
// state of a primary without replicas.
func (s *Server) replicationState() nodeState {
	r := s.replicator
	if r == nil {
		return nodeState{}
	}
	settings := r.settings()
	n := nodeState{Role: r.node.Role(), replicas: r.source.Replicas(), refuses: r.node.Refuses(), good: r.source.Good(settings.MinReplicasMaxLag)}
	n.lag, n.lagKnown = r.node.Lag()
	if settings.NeedsReplicas() && !n.Replica {
		n.wanted = settings.MinReplicas
	}
	return n
}

func (s *Server) provideReplication(r *figure.Registry) {
	figure.Provide(r, func(*figure.View) nodeState { return s.replicationState() })
}

// replicationFigures returns the figures of replication. Some of them are absent on a primary.
func replicationFigures() []figure.Figure {
	of := func(read func(n *nodeState, emit figure.Emit)) func(*figure.View, figure.Emit) {
		return func(v *figure.View, emit figure.Emit) {
			n := figure.Of[nodeState](v)
			read(&n, emit)
		}
	}
	number := func(read func(n *nodeState) float64) func(*figure.View, figure.Emit) {
		return of(func(n *nodeState, emit figure.Emit) { emit(read(n)) })
	}
	return []figure.Figure{
		{
			Name: "replica", Kind: figure.Gauge, Help: "1 on a replica, 0 on a primary.",
			Read: number(func(n *nodeState) float64 { return figure.Bit(n.Replica) }),
		},
		{
			Name: "primary_link_up", Kind: figure.Gauge, Help: "1 while a replica gets the changes of its primary, 0 while it does not. Absent on a primary.",
			Read: of(func(n *nodeState, emit figure.Emit) {
				if n.Replica {
					emit(figure.Bit(n.linkUp()))
				}
			}),
		},
		{
			Name: "primary_refused", Kind: figure.Gauge, Help: "1 on a replica that keeps its keys since its primary has another data set.",
			Read: number(func(n *nodeState) float64 { return figure.Bit(n.refuses) }),
		},
		{
			Name: "replication_lag_seconds", Kind: figure.Gauge, Help: "How far a replica is behind its primary. Absent on a primary, and until that is known.",
			Read: of(func(n *nodeState, emit figure.Emit) {
				if n.lagKnown {
					emit(n.lag.Seconds())
				}
			}),
		},
		{
			Name: "replicas", Kind: figure.Gauge, Labels: []string{"state"},
			Values: "`connected`; `good` for min-replicas-to-write; `wanted`, which is min-replicas-to-write of a primary",
			Help:   "Replicas of this server. While fewer are good than wanted it refuses changes with -NOREPLICAS.",
			Read: of(func(n *nodeState, emit figure.Emit) {
				emit(float64(len(n.replicas)), "connected")
				emit(float64(n.good), "good")
				emit(float64(n.wanted), "wanted")
			}),
		},
		{
			Name: "replica_ack_age_seconds", Kind: figure.Gauge,
			Help: "How long ago the replica that is latest has acknowledged something, 0 without replicas. They do so each second.",
			Read: number(func(n *nodeState) float64 { return n.ackAge().Seconds() }),
		},
	}
}

// ackAge returns the longest time since the last acknowledgement of any replica that was sent a
// complete state. It is 0 if there is no such replica, or if none has acknowledged anything.
func (n *nodeState) ackAge() (age time.Duration) {
	for _, r := range n.replicas {
		if r.Online {
			age = max(age, r.Heard)
		}
	}
	return age
}

package server

import (
	"slices"
	"time"

	"github.com/cellserver/cellserver/cluster"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/replication/protocol"
)

// storeState is the state of the servers that the option store names, at one reading of the
// figures. A nil *storeState means that the option is not set.
type storeState struct{ cluster.Info }

// up reports whether the store answers: its nodes are known, and none of them is down.
func (i *storeState) up() bool { return i.reason() == "" }

// reason returns why the store does not answer, or "" if it does.
func (i *storeState) reason() string {
	if i.Fault != "" {
		return i.Fault
	}
	for _, n := range i.Nodes {
		if n.State == "down" {
			return n.Addr + " is down: " + n.Reason
		}
	}
	return ""
}

// away reports whether no node of the store answers, or the nodes are not known.
func (i *storeState) away() bool {
	up := func(n cluster.NodeInfo) bool { return n.State == "up" }
	return i.Fault != "" || len(i.Nodes) > 0 && !slices.ContainsFunc(i.Nodes, up)
}

// nodeState is the state of replication at one reading of the figures. good is the number of
// replicas that count for min-replicas-to-write. wanted is min-replicas-to-write, or 0 if that does
// not apply. refuses says that this server is a replica that has refused the data set of its
// primary. lag is how far a replica is behind its primary, if lagKnown is true.
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

// provideElsewhere registers the sources from which the figures of the store and of replication
// read.
func (s *Server) provideElsewhere(r *figure.Registry) {
	figure.Provide(r, func(*figure.View) *storeState {
		if s.store == nil {
			return nil
		}
		return &storeState{s.store.Info()}
	})
	figure.Provide(r, func(*figure.View) nodeState { return s.replicationState() })
}

// storeFigures returns the figures of the store. A server without the option store does not emit
// them.
func storeFigures() []figure.Figure {
	of := func(read func(i *storeState, emit figure.Emit)) func(*figure.View, figure.Emit) {
		return func(v *figure.View, emit figure.Emit) {
			if i := figure.Of[*storeState](v); i != nil {
				read(i, emit)
			}
		}
	}
	return []figure.Figure{
		{
			Name: "store_up", Kind: figure.Gauge,
			Help: "1 while every node of the store answers, 0 while one does not or it is not known which there are. Absent without the option store.",
			Read: of(func(i *storeState, emit figure.Emit) { emit(figure.Bit(i.up())) }),
		},
		{
			Name: "store_nodes", Kind: figure.Gauge, Labels: []string{"state"}, Values: "`up`, `down` while only probes are sent", Help: "Masters of the store.",
			Read: of(func(i *storeState, emit figure.Emit) {
				count := map[string]int{"up": 0, "down": 0}
				for _, n := range i.Nodes {
					count[n.State]++
				}
				emit(float64(count["up"]), "up")
				emit(float64(count["down"]), "down")
			}),
		},
		{
			Name: "store_unanswered_total", Kind: figure.Counter, Labels: []string{"policy"}, Values: "`closed`, `open`, `local`",
			Help: "Calls that fail-policy has answered, since the store did not.",
			Read: of(func(i *storeState, emit figure.Emit) {
				for _, policy := range config.FailPolicyNames() {
					sum := int64(0)
					for _, n := range i.Policy {
						if n.Policy == policy {
							sum += n.N
						}
					}
					emit(float64(sum), policy)
				}
			}),
		},
	}
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

package engine

import (
	"time"

	"github.com/cellserver/cellserver/remote/clock"
)

// Info describes the engine for operators.
type Info struct {
	// Kind is "single", "sentinel" or "cluster", and "unknown" before the engine has answered.
	Kind string
	// Fault is the reason why the nodes are unknown, "" if they are known.
	Fault string
	Clock clock.State
	Nodes []NodeInfo
}

// NodeInfo describes a master. The numbers count since the node became known.
type NodeInfo struct {
	Addr, Version string
	// State is "up", or "down" while the node gets only probes. Reason is the reason for "down".
	State, Reason string
	// RTT is the round-trip time of the latest probe.
	RTT time.Duration
	// Waiting is the number of requests that have not been sent to the node yet.
	Waiting                                             int
	Gets, Swaps, Pipelines, Failures, Redirected, Trips int64
}

// Info describes the engine for operators. Its kind is "unknown", and it has no nodes, until the
// topology is known.
func (e *Engine) Info() Info {
	i := Info{Kind: "unknown", Clock: e.clock.State(e.o.Elapsed())}
	if why := e.fault.Load(); why != nil {
		i.Fault = *why
	}
	way := e.routes.Load()
	switch {
	case way == nil:
		return i
	case way.slots != nil:
		i.Kind = "cluster"
	case e.o.Address.Master != "":
		i.Kind = "sentinel"
	default:
		i.Kind = "single"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range way.masters {
		i.Nodes = append(i.Nodes, n.info(e.versions[n.addr].version))
	}
	return i
}

func (n *node) info(version string) NodeInfo {
	s := &n.stats
	i := NodeInfo{
		Addr: n.addr, Version: version, State: "up", RTT: time.Duration(s.rtt.Load()), Waiting: n.queue.len(),
		Gets: s.gets.Load(), Swaps: s.swaps.Load(), Pipelines: s.pipelines.Load(), Failures: s.failures.Load(),
		Redirected: s.redirected.Load(), Trips: n.breaker.trips.Load(),
	}
	if why := n.breaker.closedTo(); why != nil {
		i.State, i.Reason = "down", why.Reason
	}
	return i
}

// Outages returns how often the node of key has become available, including the first time. It
// returns 0 before that node is known.
func (e *Engine) Outages(key []byte) int64 {
	if way := e.routes.Load(); way != nil {
		if at := way.node(e.Slot(key)); at != nil {
			return 1 + at.breaker.closings.Load()
		}
	}
	return 0
}

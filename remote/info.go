package remote

import (
	"time"

	store "github.com/cellserver/cellserver/remote/engine"
)

// Info is a snapshot of the state of a store, for INFO and for metrics.
type Info struct {
	// Kind is "single", "sentinel" or "cluster", and "unknown" before the engine has answered.
	Kind string
	// Fault is the reason why the nodes of the engine are unknown, "" if they are known.
	Fault string
	// Figures has the figures of the store as a whole.
	Figures []Figure
	Nodes   []NodeInfo
	// Policy has the numbers of asks that a policy has answered in place of the engine.
	Policy []PolicyCount
}

// NodeInfo describes a master node of the engine.
type NodeInfo struct {
	Addr, Version string
	// State is "up", or "down" while the node gets only probes. Reason is the reason for "down".
	State, Reason string
	Figures       []Figure
}

// Figure is a number with its name and its meaning.
type Figure struct {
	Name, Help string
	// Counter says that Value only increases. Any other Value may also decrease.
	Counter bool
	Value   float64
}

// row defines a figure that is computed from a T.
type row[T any] struct {
	name, help string
	counter    bool
	value      func(T) float64
}

// figures computes the figures that rows define from the data of, and returns them in the order of
// rows.
func figures[T any](rows []row[T], of T) []Figure {
	all := make([]Figure, len(rows))
	for i, r := range rows {
		all[i] = Figure{r.name, r.help, r.counter, r.value(of)}
	}
	return all
}

// whole has the data from which the figures of a store are computed.
type whole struct {
	*counters
	store.Info
}

func seconds(d time.Duration) float64 { return d.Seconds() }

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var storeRows = []row[whole]{
	{"asks", "Calls submitted.", true, func(w whole) float64 { return float64(w.asks.Load()) }},
	{"batched", "Calls decided together with an earlier call.", true, func(w whole) float64 { return float64(w.batched.Load()) }},
	{"gets", "Values read.", true, func(w whole) float64 { return float64(w.gets.Load()) }},
	{"swaps", "Writes sent, including repeated ones.", true, func(w whole) float64 { return float64(w.swaps.Load()) }},
	{"applied", "Writes done.", true, func(w whole) float64 { return float64(w.applied.Load()) }},
	{"conflicts", "Writes not done because another server wrote the key first.", true, func(w whole) float64 { return float64(w.conflicts.Load()) }},
	{"remembered", "Writes decided on the remembered value, without a read.", true, func(w whole) float64 { return float64(w.fromMine.Load()) }},
	{"doubts", "Writes whose outcome the store did not report.", true, func(w whole) float64 { return float64(w.doubts.Load()) }},
	{"own_found", "Writes that were later found to be done, though the store did not report it.", true, func(w whole) float64 { return float64(w.found.Load()) }},
	{"unknown", "Calls in writes whose outcome is unknown.", true, func(w whole) float64 { return float64(w.unknown.Load()) }},
	{"repaired", "Keys whose latest writes the store had lost.", true, func(w whole) float64 { return float64(w.repaired.Load()) }},
	{"undone", "Charges given back after the call got an error or a refusal.", true, func(w whole) float64 { return float64(w.undone.Load()) }},
	{"kept", "Charges that could not be given back after the call got an error or a refusal.", true, func(w whole) float64 { return float64(w.kept.Load()) }},
	{"lost_races", "Calls over several slots whose first writes were taken back, because another server was first in a slot.", true, func(w whole) float64 { return float64(w.races.Load()) }},
	{"refunded", "Charges given back by a new write, because the old value could not be restored.", true, func(w whole) float64 { return float64(w.refunded.Load()) }},
	{"leases", "Leases taken for hot keys.", true, func(w whole) float64 { return float64(w.leases.Load()) }},
	{"leased", "Calls decided by leases.", true, func(w whole) float64 { return float64(w.leased.Load()) }},
	{"cached_denials", "Refusals repeated from memory.", true, func(w whole) float64 { return float64(w.cachedDenials.Load()) }},
	{"foreign", "Values found that are not the state of a limiter.", true, func(w whole) float64 { return float64(w.foreign.Load()) }},
	{"too_large", "Calls refused because the value would exceed store-max-value.", true, func(w whole) float64 { return float64(w.tooLarge.Load()) }},
	{"clock_ready", "1 if the store's clock is known, otherwise 0.", false, func(w whole) float64 { return flag(w.Clock.Ready) }},
	{"clock_slewing_seconds", "Time by which this server's clock still has to move to agree with the store's clock.", false, func(w whole) float64 { return seconds(w.Clock.Slewing) }},
	{"clock_spread_seconds", "Largest difference between the clocks of the store's nodes.", false, func(w whole) float64 { return seconds(w.Clock.Spread) }},
	{"clock_jumps", "Jumps of the store's clock by more than store-max-skew.", true, func(w whole) float64 { return float64(w.Clock.Jumps) }},
}

var nodeRows = []row[store.NodeInfo]{
	{"up", "1 if requests are sent to the node, 0 if only probes are.", false, func(n store.NodeInfo) float64 { return flag(n.State == "up") }},
	{"rtt_seconds", "Round-trip time of the latest probe.", false, func(n store.NodeInfo) float64 { return seconds(n.RTT) }},
	{"depth", "Requests that wait to be sent.", false, func(n store.NodeInfo) float64 { return float64(n.Waiting) }},
	{"gets", "Reads sent.", true, func(n store.NodeInfo) float64 { return float64(n.Gets) }},
	{"swaps", "Swaps sent.", true, func(n store.NodeInfo) float64 { return float64(n.Swaps) }},
	{"pipelines", "Pipelines in which the requests were sent.", true, func(n store.NodeInfo) float64 { return float64(n.Pipelines) }},
	{"failures", "Requests answered with an error.", true, func(n store.NodeInfo) float64 { return float64(n.Failures) }},
	{"redirected", "Requests that the node redirected to another node.", true, func(n store.NodeInfo) float64 { return float64(n.Redirected) }},
	{"trips", "Times requests to the node were stopped because it was unusable.", true, func(n store.NodeInfo) float64 { return float64(n.Trips) }},
}

// infoOf returns the description of a store. c has the counters of the store, e describes its
// engine, and policy has the counts of the policies.
func infoOf(c *counters, e store.Info, policy []PolicyCount) Info {
	i := Info{Kind: e.Kind, Fault: e.Fault, Figures: figures(storeRows, whole{c, e}), Policy: policy}
	for _, n := range e.Nodes {
		i.Nodes = append(i.Nodes, NodeInfo{
			Addr: n.Addr, Version: n.Version, State: n.State, Reason: n.Reason, Figures: figures(nodeRows, n),
		})
	}
	return i
}

// opened has the parts that only a store from [Open] has.
type opened struct {
	engine   *store.Engine
	policies *policies
}

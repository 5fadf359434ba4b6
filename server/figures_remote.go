package server

import (
	"slices"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/remote/servers"
)

// remoteState is the state of the servers that the option store names, at one reading of the
// figures. A nil *remoteState means that the option is not set.
type remoteState struct {
	remote.Info
	policies *policies
	servers  []servers.Server // the servers that share the store, as they were last seen
}

// up reports whether the store answers: its nodes are known, and none of them is down.
func (i *remoteState) up() bool { return i.reason() == "" }

// reason returns why the store does not answer, or "" if it does.
func (i *remoteState) reason() string {
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
func (i *remoteState) away() bool {
	up := func(n remote.NodeInfo) bool { return n.State == "up" }
	return i.Fault != "" || len(i.Nodes) > 0 && !slices.ContainsFunc(i.Nodes, up)
}

func (s *Server) provideRemote(r *figure.Registry) {
	figure.Provide(r, func(*figure.View) *remoteState {
		if s.remote == nil {
			return nil
		}
		return &remoteState{s.remote.Info(), &s.policies, s.sharing.list.Seen()}
	})
}

// remoteFigures returns the figures of the store. A server without the option store does not emit
// them.
func remoteFigures() []figure.Figure {
	of := func(read func(i *remoteState, emit figure.Emit)) func(*figure.View, figure.Emit) {
		return func(v *figure.View, emit figure.Emit) {
			if i := figure.Of[*remoteState](v); i != nil {
				read(i, emit)
			}
		}
	}
	return []figure.Figure{
		{
			Name: "store_up", Kind: figure.Gauge,
			Help: "1 while every node of the store answers, 0 while one does not or it is not known which there are. Absent without the option store.",
			Read: of(func(i *remoteState, emit figure.Emit) { emit(figure.Bit(i.up())) }),
		},
		{
			Name: "store_nodes", Kind: figure.Gauge, Labels: []string{"state"}, Values: "`up`, `down` while only probes are sent", Help: "Masters of the store.",
			Read: of(func(i *remoteState, emit figure.Emit) {
				count := map[string]int{"up": 0, "down": 0}
				for _, n := range i.Nodes {
					count[n.State]++
				}
				emit(float64(count["up"]), "up")
				emit(float64(count["down"]), "down")
			}),
		},
		{
			Name: "store_policies_age_seconds", Kind: figure.Gauge,
			Help: "Time since the store has confirmed that this server has its policies, which servers ask for each second. Absent before the policies were read, and without the option store.",
			Read: of(func(i *remoteState, emit figure.Emit) {
				if age, known := i.policies.age(); known {
					emit(age.Seconds())
				}
			}),
		},
		{
			Name: "store_change_lag_seconds", Kind: figure.Gauge,
			Help: "Time from the latest change of policies by another server to its observation by this server, by the store's clock. Absent before the first such change, and without the option store.",
			Read: of(func(i *remoteState, emit figure.Emit) {
				if lag, known := i.policies.records.Lag(); known {
					emit(lag.Seconds())
				}
			}),
		},
		{
			Name: "store_policies_subscribed", Kind: figure.Gauge,
			Help: "1 while the store tells this server of changes of policies at once, 0 while it notices them only by asking each second. Absent without the option store.",
			Read: of(func(i *remoteState, emit figure.Emit) { emit(figure.Bit(i.policies.records.Subscribed())) }),
		},
		{
			Name: "store_changes_lost_total", Kind: figure.Counter,
			Help: "Changes of policies that this server had in force or has made, and that the store has lost since, as in a failover.",
			Read: of(func(i *remoteState, emit figure.Emit) { emit(float64(i.policies.records.Lost())) }),
		},
		{
			Name: "store_policies_unreadable", Kind: figure.Gauge,
			Help: "Policies in the store with records that this server cannot read, as those of a later release. fail-policy answers calls under them. Absent without the option store.",
			Read: of(func(i *remoteState, emit figure.Emit) { emit(float64(i.policies.registry.UnreadablePolicies())) }),
		},
		{
			Name: "store_servers", Kind: figure.Gauge,
			Help: "Live servers that share the store, as this server has last seen them in the store. Absent before the first time, and without the option store.",
			Read: of(func(i *remoteState, emit figure.Emit) {
				if i.servers != nil {
					emit(float64(len(i.servers)))
				}
			}),
		},
		{
			Name: "store_policy_files", Kind: figure.Gauge,
			Help: "Different policy files that the live servers with this store have; having none counts as one. More than 1 means that some servers decide by other policies than others. Absent as store_servers is.",
			Read: of(func(i *remoteState, emit figure.Emit) {
				if i.servers != nil {
					emit(float64(policyFiles(i.servers)))
				}
			}),
		},
		{
			Name: "store_policies_unfit", Kind: figure.Gauge,
			Help: "Overrides, boosts, blocks and exemptions in the store that are not in force on this server, because their patterns are no networks and the policy has KEY IP here.",
			Read: of(func(i *remoteState, emit figure.Emit) { emit(float64(i.policies.registry.Unfit())) }),
		},
		{
			Name: "store_changes_unconfirmed_total", Kind: figure.Counter,
			Help: "Changes of policies that this server has made and answered with UNCONFIRMED: no replica of the store has confirmed them within 500 ms.",
			Read: of(func(i *remoteState, emit figure.Emit) { emit(float64(i.policies.records.Unconfirmed())) }),
		},
		{
			Name: "store_unanswered_total", Kind: figure.Counter, Labels: []string{"policy"}, Values: "`closed`, `open`, `local`",
			Help: "Calls that fail-policy has answered, since the store did not.",
			Read: of(func(i *remoteState, emit figure.Emit) {
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

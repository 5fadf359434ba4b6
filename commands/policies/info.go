package policies

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/command/policystore"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/registry"
)

// keeper removes expired entries of policies for a server.
type keeper struct {
	server *command.Server
	tidies atomic.Bool // whether a goroutine runs Registry.Tidy
}

// tidy removes expired entries of policies on another goroutine, unless that is already running:
// see [registry.Registry.Tidy]. The Decay hook calls it once a minute for each worker.
func (k *keeper) tidy() {
	s := k.server
	if s.Options.Policies == nil || k.tidies.Swap(true) {
		return
	}
	s.Host.Work.Spawn(func() {
		defer k.tidies.Store(false)
		if change := s.Options.ChangePolicies; change != nil {
			change(func(st registry.Store) { s.Options.Policies.Tidy(st, true) })
			return
		}
		s.Host.Work.WithStore(0, func(st env.Store) {
			const still = command.HaltReadOnly | command.HaltLoading | command.HaltPaused
			s.Options.Policies.Tidy(policystore.Store(st.(policystore.Backing)), s.Halts.Load()&still == 0)
		})
	})
}

// maxPolicies is the maximum number of policies that have their own time series in the metrics.
const maxPolicies = 50

// figures returns the metrics about policies: their number, their decisions by policy, and the sums
// of their other counters.
func figures() []figure.Figure {
	return []figure.Figure{
		{
			Name: "policies", Kind: figure.Gauge, Labels: []string{"kind"}, Values: "`policies`, `overrides`, `temporary` for boosts, blocks and exemptions",
			Help: "Limits that live in the server.", Info: figure.Prefixed("Ratelimit", ""),
			Read: reading(func(t *policy.Table, emit figure.Emit) {
				sizes := t.Sizes()
				emit(float64(sizes.Policies), "policies")
				emit(float64(sizes.Overrides), "overrides")
				emit(float64(sizes.Others), "temporary")
			}),
		},
		{
			Name: "policy_decisions_total", Kind: figure.Counter, Labels: []string{"policy", "result"}, Bound: maxPolicies, Own: true,
			Values: "name of a policy, `other` for those beyond 50; `allowed`, `denied`",
			Help:   "Calls of RL.USE that charge something, by policy, whatever has decided them. A call counts once, however many clauses the policy has. One that another policy of the call denies is not counted.",
			Read: reading(func(t *policy.Table, emit figure.Emit) {
				t.EachPolicy(func(p *policy.Policy) {
					for i := range answers {
						emit(float64(answers[i].of(p.Counts).Load()), p.Name, answers[i].name)
					}
				})
			}),
		},
		{
			Name: "policy_reserved_units_total", Kind: figure.Counter, Labels: []string{"kind"}, Values: "`estimated`, `actual`",
			Help: "Units of the reservations under policies that were committed before their ttl had passed: as reserved, and as committed. A call with several limits of units counts the one with the largest estimate. RL.POLICY GET has them by policy.",
			Info: figure.Prefixed("Ratelimit", "policy-units-"),
			Read: reading(func(t *policy.Table, emit figure.Emit) {
				all, some := [len(sums)]float64{}, false
				t.EachPolicy(func(p *policy.Policy) {
					some = true
					for i := range sums {
						all[i] += float64(sums[i].of(p.Counts).Load())
					}
				})
				for i := range all {
					if some {
						emit(all[i], sums[i].name)
					}
				}
			}),
		},
		{
			Name: "policy_calls_total", Kind: figure.Counter, Labels: []string{"result"},
			Values: "`blocked`, `banned`, `exempted`, `exempted-would-be-denied`, `shadow-would-be-denied`, and by policy and candidate `try-both-allow`, `try-only-old-allows`, `try-only-new-allows`, `try-neither-allows`",
			Help:   "Calls of RL.USE that something else than the limits has decided, and those that a candidate has decided, too. RL.POLICY GET has them by policy.",
			Info:   figure.Prefixed("Ratelimit", "policy-calls-"),
			Read: reading(func(t *policy.Table, emit figure.Emit) {
				var sum []int64
				t.EachPolicy(func(p *policy.Policy) {
					if sum == nil {
						sum = make([]int64, len(counters))
					}
					for i := range counters {
						sum[i] += counters[i].of(p.Counts).Load()
					}
				})
				for i := range sum {
					emit(float64(sum[i]), counters[i].name)
				}
			}),
		},
	}
}

// reading returns the reader of a metric about the policies in force. On a server without policies
// the metric has no values.
func reading(read func(t *policy.Table, emit figure.Emit)) func(*figure.View, figure.Emit) {
	return func(v *figure.View, emit figure.Emit) {
		if s := figure.Of[*command.Server](v); s.Options.Policies != nil {
			read(s.Options.Policies.Table(), emit)
		}
	}
}

// counter is a counter of a policy with the name under which it is shown.
type counter struct {
	name string
	of   func(n *policy.Counts) *atomic.Int64
}

// answers are the counters of allowed and denied calls, in the order in which they are shown.
var answers = [...]counter{
	{"allowed", func(n *policy.Counts) *atomic.Int64 { return &n.Allowed }},
	{"denied", func(n *policy.Counts) *atomic.Int64 { return &n.Denied }},
}

// sums are the sums of units of a policy, in the order in which they are shown.
var sums = [...]counter{
	{"estimated", func(n *policy.Counts) *atomic.Int64 { return &n.Estimated }},
	{"actual", func(n *policy.Counts) *atomic.Int64 { return &n.Actual }},
}

// counters are the other counters of a policy, in the order in which they are shown.
var counters = [...]counter{
	{"blocked", func(n *policy.Counts) *atomic.Int64 { return &n.Blocked }},
	{"banned", func(n *policy.Counts) *atomic.Int64 { return &n.Banned }},
	{"exempted", func(n *policy.Counts) *atomic.Int64 { return &n.Exempted }},
	{"exempted-would-be-denied", func(n *policy.Counts) *atomic.Int64 { return &n.ExemptedDenied }},
	{"shadow-would-be-denied", func(n *policy.Counts) *atomic.Int64 { return &n.ShadowDenied }},
	{"try-both-allow", func(n *policy.Counts) *atomic.Int64 { return &n.TryBoth }},
	{"try-only-old-allows", func(n *policy.Counts) *atomic.Int64 { return &n.TryOnlyOld }},
	{"try-only-new-allows", func(n *policy.Counts) *atomic.Int64 { return &n.TryOnlyNew }},
	{"try-neither-allows", func(n *policy.Counts) *atomic.Int64 { return &n.TryNeither }},
}

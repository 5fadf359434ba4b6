package policies

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/commands/policystore"
	"github.com/cellserver/cellserver/policy"
)

// keeper is what the group keeps for the server.
type keeper struct {
	server *command.Server
	tidies atomic.Bool // a goroutine does
}

// tidy drops what has ended, once a minute, on a goroutine of its own: see
// [registry.Registry.Tidy].
func (k *keeper) tidy() {
	s := k.server
	if s.Options.Policies == nil || k.tidies.Swap(true) {
		return
	}
	s.Host.Spawn(func() {
		defer k.tidies.Store(false)
		s.Host.WithStore(0, func(st env.Store) {
			const still = command.HaltReadOnly | command.HaltLoading | command.HaltPaused
			s.Options.Policies.Tidy(policystore.Store(st), s.Halts.Load()&still == 0)
		})
	})
}

// info tells what there is and what was counted, over all policies.
func (k *keeper) info(i *command.Info) {
	if k.server.Options.Policies == nil {
		return
	}
	t := k.server.Options.Policies.Table()
	sizes := t.Sizes()
	i.Policies = []command.Counted{
		{Of: "policies", N: int64(sizes.Policies)}, {Of: "overrides", N: int64(sizes.Overrides)}, {Of: "temporary", N: int64(sizes.Others)},
	}
	t.EachPolicy(func(p *policy.Policy) {
		all := counted(p.Counts)
		if i.PolicyCalls == nil {
			i.PolicyCalls = all
			return
		}
		for n := range all {
			i.PolicyCalls[n].N += all[n].N
		}
	})
}

// counted returns the counters of a policy.
func counted(n *policy.Counts) []command.Counted {
	return []command.Counted{
		{Of: "blocked", N: n.Blocked.Load()},
		{Of: "exempted", N: n.Exempted.Load()},
		{Of: "exempted-would-be-denied", N: n.ExemptedDenied.Load()},
		{Of: "shadow-would-be-denied", N: n.ShadowDenied.Load()},
		{Of: "try-both-allow", N: n.TryBoth.Load()},
		{Of: "try-only-old-allows", N: n.TryOnlyOld.Load()},
		{Of: "try-only-new-allows", N: n.TryOnlyNew.Load()},
		{Of: "try-neither-allows", N: n.TryNeither.Load()},
	}
}

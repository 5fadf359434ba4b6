package policies

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
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
			s.Options.Policies.Tidy(Store(st), s.Halts.Load()&still == 0)
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
	p := &i.Policies
	p.Policies, p.Overrides, p.Others = int64(sizes.Policies), int64(sizes.Overrides), int64(sizes.Others)
	t.EachPolicy(func(is *policy.Policy) {
		n := is.Counts
		p.Blocked += n.Blocked.Load()
		p.Exempted += n.Exempted.Load()
		p.ShadowDenied += n.ShadowDenied.Load()
	})
}

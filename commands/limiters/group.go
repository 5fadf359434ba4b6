package limiters

import (
	"slices"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/stats"
)

// Group returns the command group of the limiters. For each server it keeps the counts of groups of
// keys, sets [command.Server].Seen, and has hooks that maintain the tables of RL.TOP.
func Group() command.Group {
	return command.Group{
		Commands: slices.Concat(throttleCommands(), slidingWindowCommands(), tokenBucketCommands(), concurrencyCommands(),
			multiCommands(), useCommands(), ratelimitCommands()),
		Server: func(s *command.Server, slot command.Slot) (any, command.Hooks) {
			m := new(mixed)
			s.Seen = watch{s, slot, m}
			groups := stats.NewGroups(s.Options.Groups)
			hooks := topHooks(slot)
			hooks.LimitsChanged = func() { groups.SetNear(s.Limits().NearLimit) }
			return groups, hooks
		},
		Worker: func(w *command.Worker, slot command.Slot) any {
			return &scratch{
				counts: slot.OfServer(w.Server).(*stats.Groups).NewLane(), mixed: w.Server.Seen.(watch).mixed, denials: stats.NewSampler(),
			}
		},
		Figures: figures(),
	}
}

package limiters

import (
	"slices"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/ratelimit"
)

// Group returns the command group of the limiters. For each server it keeps a [ratelimit.Service],
// which the deciders of its workers share, and sets [command.Server].Seen. Its hooks maintain the
// statistics of keys.
func Group() command.Group {
	return command.Group{
		Commands: slices.Concat(throttleCommands(), slidingWindowCommands(), tokenBucketCommands(), concurrencyCommands(),
			multiCommands(), useCommands(), settleCommands(), ratelimitCommands()),
		Server: func(s *command.Server, slot command.Slot) (any, command.Hooks) {
			service := newService(s, slot)
			s.Seen = seen{service.Keys, slot}
			h := hooks(slot, service.Keys)
			h.LimitsChanged = func() { service.Keys.Groups().SetNear(s.Limits().NearLimit) }
			return service, h
		},
		Worker: func(w *command.Worker, slot command.Slot) any {
			d := slot.OfServer(w.Server).(*ratelimit.Service).NewDecider(w.Store)
			return &scratch{decider: d, recorder: d.Recorder}
		},
		Figures: figures(),
	}
}

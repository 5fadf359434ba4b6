package limiters

import (
	"slices"

	"github.com/cellserver/cellserver/commands/command"
)

// Group returns the limiters: what this server is for.
func Group() command.Group {
	return command.Group{
		Commands: slices.Concat(throttleCommands(), slidingWindowCommands(), tokenBucketCommands(), concurrencyCommands(),
			multiCommands(), ratelimitCommands()),
		Server: func(_ *command.Server, slot command.Slot) (any, command.Hooks) { return nil, topHooks(slot) },
		Worker: func(*command.Worker, command.Slot) any { return new(scratch) },
	}
}

package limiters

import (
	"slices"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
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

// scratch is the scratch of the limiters, and what RL.TOP shows.
type scratch struct {
	throttle throttleCall
	window   slidingwindow.Call
	bucket   tokenbucket.Call
	lease    concurrency.Call
	multi    multiArgs
	// What RL.TOP shows: the tables, and the keys of this batch on their way there.
	denied, calls            topTable
	noted, notedMany, called []notedKey
	refusals                 int // of this batch
	untilCall                int
}

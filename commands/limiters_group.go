package commands

import (
	"slices"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// limitersGroup returns the limiters: what this server is for.
func limitersGroup() command.Group {
	return command.Group{
		Commands: slices.Concat(throttleCommands(), slidingWindowCommands(), tokenBucketCommands(), concurrencyCommands(),
			multiCommands(), ratelimitCommands()),
		Worker: func() any { return new(limiterScratch) },
		Hooks:  topHooks(),
	}
}

// limiterScratch is the scratch of the limiters, and what RL.TOP shows.
type limiterScratch struct {
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

package sortedsets

import (
	"slices"

	"github.com/cellserver/cellserver/commands/blocking"
	"github.com/cellserver/cellserver/commands/command"
)

// Group returns the commands on sorted sets.
func Group() command.Group {
	return command.Group{
		Commands: keyUses.In(slices.Concat(sortedSetCommands(), popCommands())),
		Needs:    []*command.Group{blocking.Part},
		Worker:   func(*command.Worker, command.Slot) any { return new(sortedCall) },
	}
}

// keyUses has the uses of keys that differ from those of most commands.
var keyUses = command.KeyUses{
	{"zadd", command.UsesUpdates, 0},
	{"zrem zremrangebyscore zremrangebyrank", command.UsesDeletes, 0},
	{"zpopmin zpopmax zmpop bzpopmin bzpopmax bzmpop", command.UsesTakes, 0},
	{"zcard", command.UsesNothing, 0},
}

package lists

import (
	"slices"

	"github.com/cellserver/cellserver/commands/blocking"
	"github.com/cellserver/cellserver/commands/command"
)

// Group returns the commands on lists.
func Group() command.Group {
	return command.Group{
		Commands: keyUses.In(slices.Concat(commands(), popCommands())),
		Needs:    []*command.Group{blocking.Part},
	}
}

// keyUses has the uses of keys that differ from those of most commands.
var keyUses = command.KeyUses{
	{"lpush rpush lpushx rpushx", command.UsesInserts, 0},
	{"lset", command.UsesUpdates, 0},
	{"lrem ltrim", command.UsesDeletes, 0},
	{"lpop rpop blpop brpop lmpop blmpop", command.UsesTakes, 0},
	{"llen", command.UsesNothing, 0},
	{"lmove rpoplpush blmove brpoplpush", command.UsesTakes, command.UsesInserts},
}

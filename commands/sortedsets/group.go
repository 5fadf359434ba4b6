package sortedsets

import (
	"slices"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/blocking"
)

// store is the part of the store that the commands of this group use. Only the commands that wait
// for elements need all of it.
type store = blocking.Store

// storeCall is a call of a command of this group.
type storeCall = blocking.StoreCall

// Group returns the command group on sorted sets, including those that wait for elements.
func Group() command.Group {
	return command.Group{
		Commands: slices.Concat(sortedSetCommands(), sortedSetRanges(), popCommands()),
		Needs:    []*command.Group{blocking.Part},
		Worker:   func(*command.Worker, command.Slot) any { return new(sortedCall) },
	}
}

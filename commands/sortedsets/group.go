package sortedsets

import (
	"slices"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/blocking"
)

// Group returns the command group on sorted sets, including those that wait for elements.
func Group() command.Group {
	return command.Group{
		Commands: slices.Concat(sortedSetCommands(), sortedSetRanges(), popCommands()),
		Needs:    []*command.Group{blocking.Part},
		Worker:   func(*command.Worker, command.Slot) any { return new(sortedCall) },
	}
}

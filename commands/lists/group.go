package lists

import (
	"slices"

	"github.com/cellserver/cellserver/commands/blocking"
	"github.com/cellserver/cellserver/commands/command"
)

// Group returns the command group on lists, including those that wait for elements.
func Group() command.Group {
	return command.Group{
		Commands: slices.Concat(commands(), popCommands()),
		Needs:    []*command.Group{blocking.Part},
	}
}

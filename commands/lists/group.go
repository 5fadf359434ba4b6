package lists

import (
	"slices"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/blocking"
)

// Group returns the command group on lists, including those that wait for elements.
func Group() command.Group {
	return command.Group{
		Commands: slices.Concat(commands(), popCommands()),
		Needs:    []*command.Group{blocking.Part},
	}
}

// Package extension adds commands to the server from a module of its own: EX.COUNT, and BACKOFF.TRY
// with a limiter family that the server does not have. It does the steps for a new command and a
// new family in CONTRIBUTING.md, and imports no package that other modules must not import.
package extension

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands"
)

// Groups returns all groups of the server, and the group of this package. It is for
// server.Options.Groups.
func Groups() []command.Group { return append(commands.Groups(), Group()) }

// Group returns the commands of this package.
func Group() command.Group {
	return command.Group{Commands: []*command.Command{countCommand(), tryCommand()}}
}

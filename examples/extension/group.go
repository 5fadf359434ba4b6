// Package extension adds commands to the server from a module of its own: EX.COUNT and BACKOFF.TRY.
// BACKOFF.TRY has a limiter family that the server does not have. The package does the steps for a
// new command and a new family in CONTRIBUTING.md, and imports only packages that other modules may
// import.
package extension

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/env"
)

// Groups returns all groups of the server, and the group of this package. It is for
// server.Options.Groups.
func Groups() []command.Group { return append(commands.Groups(), Group()) }

// store is the part of the store that the commands of this group use: its clock, and strings.
type store interface {
	env.Store
	env.Strings
}

// storeCall is a call of a command of this group.
type storeCall = command.CallOn[store]

// Group returns the commands of this package.
func Group() command.Group {
	return command.Group{Commands: []*command.Command{countCommand(), tryCommand()}}
}

package connection

import (
	"slices"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
)

// Group returns AUTH, HELLO, CLIENT and their kin.
func Group() command.Group {
	return command.Group{
		Commands: command.With(command.FlagLocal, slices.Concat(commands(), command.With(command.FlagFence, clientCommands()...))...),
		Server: func(*command.Server, command.Slot) (any, command.Hooks) {
			g := &authGuard{tats: make(map[string]limit.Instant)}
			return g, command.Hooks{Info: func(i *command.Info) { i.FailedLogins = g.failures() }}
		},
	}
}

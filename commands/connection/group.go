package connection

import (
	"slices"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/limit"
)

// Group returns the command group of AUTH, HELLO, CLIENT and the other commands about connections.
// For each server it sets [command.Server].Logins and ClientLine.
func Group() command.Group {
	return command.Group{
		Commands: command.With(command.FlagLocal, slices.Concat(commands(), command.With(command.FlagFence, clientCommands()...))...),
		Server: func(s *command.Server, _ command.Slot) (any, command.Hooks) {
			s.ClientLine = func(cl *command.Client, now limit.Instant) []byte { return describe(s, nil, cl, now, request{}) }
			g := newAuthGuard()
			s.Logins = g
			return g, command.Hooks{Closed: func(cl *command.Client) { g.end(cl.ID) }}
		},
		Figures: []figure.Figure{{
			Name: "auth_failures_total", Kind: figure.Counter, Help: "Attempts to log in that failed.", Read: command.Counted((*authGuard).failures),
		}},
	}
}

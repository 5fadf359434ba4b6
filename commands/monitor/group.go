package monitor

import "github.com/cellserver/cellserver/command"

// Group returns the command group of MONITOR, SLOWLOG, LATENCY and DEBUG.
func Group() command.Group {
	return command.Group{
		Commands: command.With(command.FlagLocal|command.FlagFence, monitorCommand(), slowlogCommand(), latencyCommand(), debugCommand()),
		Server: func(s *command.Server, _ command.Slot) (any, command.Hooks) {
			a := &audience{server: s}
			return a, command.Hooks{
				BatchEnd: a.flush,
				Reset:    a.reset,
				Closed:   a.leave,
				Describe: func(cl *command.Client, d *command.Description) { d.Monitors = a.has(cl) },
			}
		},
	}
}

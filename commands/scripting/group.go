package scripting

import (
	"slices"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/lua"
)

// Group returns the command group of EVAL, SCRIPT and FUNCTION, with FCALL and the variants of
// EVAL.
func Group() command.Group {
	return command.Group{
		Commands: slices.Concat(commands(), functionCommands()),
		Server: func(s *command.Server, _ command.Slot) (any, command.Hooks) {
			return newEngine(s), command.Hooks{}
		},
		Worker: func(w *command.Worker, slot command.Slot) any {
			k := &worker{engine: slot.OfServer(w.Server).(*engine)}
			k.host.w.OnError, k.host.w.Most = w.OnError, command.MaxScriptReply
			return k
		},
		Figures: figures(),
	}
}

func newEngine(s *command.Server) *engine {
	e := &engine{server: s}
	e.runs = lua.NewPool(e.limits())
	return e
}

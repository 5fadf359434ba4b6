package scripting

import (
	"math"

	"github.com/cellserver/cellserver/lua"
)

// limits returns the bounds for all scripts of the server together.
func (e *engine) limits() lua.Limits {
	l := lua.DefaultLimits()
	l.Room = e.server.Options.ScriptRoom
	if e.server.Options.FreeHeap != nil {
		l.FreeGarbage = e.freeGarbage
	}
	return l
}

// freeGarbage starts a garbage collection in the background after a large script, if maxmemory
// bounds the process: keys may need that memory before the next script does.
func (e *engine) freeGarbage() {
	if e.server.Options.ScriptRoom == nil {
		return
	}
	if bound, _ := e.server.Options.ScriptRoom(); bound == math.MaxInt64 {
		return
	}
	t := &e.tidy
	t.again.Store(true)
	if t.running.Swap(true) {
		return
	}
	e.server.Host.Spawn(func() {
		for {
			for t.again.Swap(false) {
				e.server.Options.FreeHeap()
			}
			t.running.Store(false)
			if !t.again.Load() || t.running.Swap(true) {
				return
			}
		}
	})
}

package scripting

import (
	"math"

	"github.com/cellserver/cellserver/lua"
)

// limits returns the limits of each script: the defaults, and functions for the heap bound of the
// server, which scripts share with the keys.
func (e *engine) limits() lua.Limits {
	l := lua.DefaultLimits()
	l.Room = e.server.Options.ScriptRoom
	if e.server.Options.FreeHeap != nil {
		l.FreeGarbage = e.freeGarbage
	}
	return l
}

// freeGarbage frees the garbage of a large script on another goroutine, because keys may need the
// memory before the next script does. It does nothing if maxmemory does not bound the process. If
// the goroutine already runs, it frees garbage once more.
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
	e.server.Host.Work.Spawn(func() {
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

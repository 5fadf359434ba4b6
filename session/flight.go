package session

import (
	"sync"
	"unsafe"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/decide"
)

const (
	// mostSlots is how many commands ask together.
	mostSlots = command.MaxRequests
	// keptBytes is how many bytes of each kind a flight may have room for that is used again,
	// and keptAsks how many asks.
	keptBytes = 16 << 10
	keptAsks  = 2 * mostSlots
)

// flights lends them: a worker has one at a time, and a session only while it waits.
var flights = sync.Pool{New: func() any {
	f := new(flight)
	f.done = f.landed
	return f
}}

func newFlight() *flight { return flights.Get().(*flight) }

// recycle forgets everything and gives the flight back, unless it has grown large.
func (f *flight) recycle() {
	if len(f.asks) > keptAsks || cap(f.text) > keptBytes || cap(f.local) > keptBytes {
		return
	}
	f.clear()
	flights.Put(f)
}

// clear forgets everything.
func (f *flight) clear() {
	f.added = 0
	f.drop()
	clear(f.slots)
	f.slots, f.text, f.local, f.wait = f.slots[:0], f.text[:0], f.local[:0], nil
	f.from, f.together, f.silent, f.postpone = 0, false, false, false
}

// drop forgets asks that no slot has.
func (f *flight) drop() {
	for _, a := range f.asks[f.added:f.used] {
		*a = decide.Ask{}
	}
	f.used = f.added
}

// size is how many bytes it takes, if that is worth a word.
func (f *flight) size() int {
	n := cap(f.text) + cap(f.local)
	if n += len(f.asks) * int(unsafe.Sizeof(decide.Ask{})); n > 2*keptAsks*int(unsafe.Sizeof(decide.Ask{})) {
		return n
	}
	return 0
}

// landed is told by the Remote that all is decided. It wakes the session if that waits.
func (f *flight) landed() {
	if f.left.Add(-1) == 0 {
		f.wait.Finish(nil)
	}
}

// NewAsk implements [command.Collector].
func (l *Worker) NewAsk() *decide.Ask {
	f := l.flight
	if f.used == len(f.asks) {
		more := make([]decide.Ask, min(max(4, f.used), mostSlots))
		for i := range more {
			f.asks = append(f.asks, &more[i])
		}
	}
	f.used++
	return f.asks[f.used-1]
}

// Add implements [command.Collector]. The asks get bytes of their own at once: those of a
// transaction do not last until the batch is over, and what a group fills in for one call
// serves the next, too.
func (l *Worker) Add(c *command.Call) {
	f := l.flight
	first := f.added
	for _, a := range f.asks[first:f.used] {
		f.text = a.Own(f.text)
	}
	f.added = f.used
	f.slots = append(f.slots, slot{
		cmd: c.Cmd, ask: f.asks[first], at: len(c.W.Buf) - f.from, proto: c.W.Proto,
	})
	f.together = f.together || c.Client.Exclusive
}

// Drop implements [command.Collector].
func (l *Worker) Drop() { l.flight.drop() }

// fences reports whether a flight ends before a command, and behind it: one that wants all
// before it to be over, or that may park the session by itself.
func (l *Worker) fences(a *request) bool {
	cmd := a.cmd
	if cmd == nil || len(a.args) == 0 {
		return false
	}
	if cmd.Sub != nil && len(a.args) > 1 {
		if sub := cmd.Subcommand(a.args[1]); sub != nil {
			cmd = sub
		}
	}
	return cmd.Flags&command.FlagFence != 0 || len(a.args) > cmd.InlineWords || cmd.Waits != nil && cmd.ArityOK(len(a.args)) && cmd.Waits(l.Server, a.args)
}

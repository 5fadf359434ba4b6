package session

import (
	"sync"
	"unsafe"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
)

const (
	// maxSlots is the maximum number of commands whose decisions a session awaits at once.
	maxSlots = command.MaxRequests
	// keptBytes is the maximum size of each byte buffer that a flight keeps for reuse. keptAsks
	// is the maximum number of asks that it keeps.
	keptBytes = 16 << 10
	keptAsks  = 2 * maxSlots
)

// flights is a pool of flights. On a server with a Remote each worker always has a flight. A session
// has one only while it waits for decisions.
var flights = sync.Pool{New: func() any {
	f := new(flight)
	f.done = f.landed
	return f
}}

func newFlight() *flight { return flights.Get().(*flight) }

// recycle clears the flight and returns it to the pool. A flight that has grown beyond keptBytes
// or keptAsks is left to the garbage collector.
func (f *flight) recycle() {
	if len(f.asks) > keptAsks || cap(f.text) > keptBytes || cap(f.local) > keptBytes {
		return
	}
	f.clear()
	flights.Put(f)
}

func (f *flight) clear() {
	f.added = 0
	f.drop()
	clear(f.slots)
	f.slots, f.text, f.local, f.wait = f.slots[:0], f.text[:0], f.local[:0], nil
	f.from, f.together, f.silent, f.postpone = 0, false, false, false
}

// drop discards the asks that belong to no slot.
func (f *flight) drop() {
	for _, a := range f.asks[f.added:f.used] {
		*a = decide.Ask{}
	}
	f.used = f.added
}

// size returns the approximate number of bytes that the flight takes, or 0 if it has not grown
// beyond the usual size.
func (f *flight) size() int {
	n := cap(f.text) + cap(f.local)
	if n += len(f.asks) * int(unsafe.Sizeof(decide.Ask{})); n > 2*keptAsks*int(unsafe.Sizeof(decide.Ask{})) {
		return n
	}
	return 0
}

// landed is called when the Remote has decided all asks of the flight. If launch has parked the
// session by then, landed finishes the wait, which wakes the session. Otherwise launch writes the
// replies.
func (f *flight) landed() {
	if f.left.Add(-1) == 0 {
		f.wait.Finish(nil)
	}
}

// NewAsk implements [command.Collector]: it returns an empty ask of the flight. The caller fills
// it and then calls Add or Drop.
func (w *Worker) NewAsk() *decide.Ask {
	f := w.flight
	if f.used == len(f.asks) {
		more := make([]decide.Ask, min(max(4, f.used), maxSlots))
		for i := range more {
			f.asks = append(f.asks, &more[i])
		}
	}
	f.used++
	return f.asks[f.used-1]
}

// Add implements [command.Collector]: it makes the new asks a slot of the flight, for the command
// of c. It copies the bytes that the asks refer to at once: those of a transaction do not last
// until the end of the batch, and a group reuses the memory of one call for the next.
func (w *Worker) Add(c *command.Call) {
	f := w.flight
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

// Drop implements [command.Collector]: it discards the asks since the last Add.
func (w *Worker) Drop() { w.flight.drop() }

// fences reports whether a flight has to end before and after the command a. That is so if the
// command needs all commands before it to be finished, or if it may park the session itself.
func (w *Worker) fences(a *request) bool {
	cmd := a.cmd
	if cmd == nil || len(a.args) == 0 {
		return false
	}
	if cmd.Sub != nil && len(a.args) > 1 {
		if sub := cmd.Subcommand(a.args[1]); sub != nil {
			cmd = sub
		}
	}
	return cmd.Flags&command.FlagFence != 0 || len(a.args) > cmd.InlineWords || cmd.Waits != nil && cmd.ArityOK(len(a.args)) && cmd.Waits(w.Server, a.args)
}

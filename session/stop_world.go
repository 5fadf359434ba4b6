package session

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// StopWorld implements [command.Exclusives]: it keeps all other goroutines out of the store for the
// rest of the batch of c. It returns false if another goroutine has stopped the world; c then
// runs again when the world starts.
func (e *Engine) StopWorld(c *command.Call) bool { return workerOf(c.Worker).stopWorld() }

// stopWorld stops the world for the rest of the batch, unless this worker has stopped it already.
// It returns false and sets w.WorldBusy if another goroutine has stopped the world. The command
// then has to run again when the world starts.
func (w *Worker) stopWorld() bool {
	if w.stopped {
		return true
	}
	w.stopped = w.stop()
	w.WorldBusy = !w.stopped
	return w.stopped
}

// startWorld starts the world at the end of a batch, if this worker has stopped it.
func (w *Worker) startWorld() {
	if w.stopped {
		w.stopped = false
		w.start()
	}
}

// stop stops the world, and returns false if another goroutine has stopped it. On a store without
// keys there is no world to stop, and stop returns true.
func (w *Worker) stop() bool { return w.world == nil || w.world.StopWorld() }

func (w *Worker) start() {
	if w.world != nil {
		w.world.StartWorld()
	}
}

// withStoppedWorld runs f with its own worker while no other goroutine is in the store. It blocks
// until it can stop the world. If an exclusive command was aborted, the world stays stopped.
func (e *Engine) withStoppedWorld(f func(w *Worker)) {
	w := e.takeWorker()
	defer e.returnWorker(w)
	for {
		for !w.enter() {
			<-opening(w.world)
		}
		if w.stop() {
			break
		}
		w.leave()
	}
	defer func() {
		w.leave()
		if !e.isAborted() { // Close starts the world then, after all clients have been disconnected
			w.start()
		}
	}()
	f(w)
}

func (e *Engine) isAborted() bool {
	e.exclusive.mu.Lock()
	defer e.exclusive.mu.Unlock()
	return e.exclusive.aborted
}

// whileStopped returns how the session continues after its worker could not enter the store.
// Usually the session is parked until the world starts. While a script is busy, proceed is true:
// the session is fed, so that it can reply with BUSY errors, or kill the script.
func (s *Session) whileStopped(w *Worker) (next transport.Next, proceed bool) {
	if s.engine.exclusive.busy.Load() {
		return transport.Read, true
	}
	s.awaitStart(w)
	return transport.Park, false
}

// awaitStart arranges that the session is woken when the world starts, or when the running script
// becomes busy.
func (s *Session) awaitStart(w *Worker) {
	w.world.NotifyStart(s.Peer.Wake)
	if s.engine.exclusive.busy.Load() { // busy means that the waiting sessions were woken before this session began to wait
		s.Peer.Wake()
	}
}

// waitsForScript reports whether the command a has to wait for the end of a busy script, instead
// of being refused: a may run while a script is busy but needs the store, or the script is about
// to end. If it returns true, the session is woken when the world starts, and the caller parks
// it.
func (s *Session) waitsForScript(w *Worker, a *request) bool {
	if len(a.args) == 0 || s.engine.exclusive.busy.Load() && (a.cmd == nil || !s.engine.NeedsStore(&s.Client, a.cmd)) {
		return false // a command that was discarded while it arrived cannot be split off again
	}
	s.guard = resp.Guard{} // the command will be split off from the input again
	w.world.NotifyStart(s.Peer.Wake)
	return true
}

// runAgain arranges that the session is woken when the world starts. Then the command that could
// not run is split off and runs again. The caller parks the session.
func (s *Session) runAgain(w *Worker) {
	w.WorldBusy = false
	if w.runLen > 0 {
		w.runLen-- // the command will be counted when it runs again
	}
	s.guard = resp.Guard{}
	s.awaitStart(w)
}

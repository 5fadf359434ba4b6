package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// StopWorld implements [command.Host].
func (e *Engine) StopWorld(c *command.Call) bool { return workerOf(c.Worker).stopWorld() }

// stopWorld stops the world for the rest of the batch. It returns false if another goroutine has
// stopped it. The command then has to run again when that is over.
func (w *Worker) stopWorld() bool {
	if w.stopped {
		return true
	}
	w.stopped = w.Store.StopWorld()
	w.WorldBusy = !w.stopped
	return w.stopped
}

// startWorld starts the world at the end of a batch that has stopped it.
func (w *Worker) startWorld() {
	if w.stopped {
		w.stopped = false
		w.Store.StartWorld()
	}
}

// withStoppedWorld runs f with its own worker while no other goroutine is in the store.
func (e *Engine) withStoppedWorld(f func(w *Worker)) {
	w := e.takeWorker()
	defer e.returnWorker(w)
	for {
		for !w.Store.Enter() {
			open := make(chan struct{}, 1)
			w.Store.NotifyStart(func() { open <- struct{}{} })
			<-open
		}
		if w.Store.StopWorld() {
			break
		}
		w.Store.Leave()
	}
	defer func() {
		w.Store.Leave()
		if !e.isAborted() { // otherwise Close starts it, after all clients have been disconnected
			w.Store.StartWorld()
		}
	}()
	f(w)
}

// isAborted reports whether an exclusive command was aborted.
func (e *Engine) isAborted() bool {
	e.exclusive.mu.Lock()
	defer e.exclusive.mu.Unlock()
	return e.exclusive.aborted
}

// whileStopped returns how a session continues whose worker could not enter the store: it waits,
// unless a script is busy. Then it is fed, so that it can reply with errors, and can kill the
// script.
func (s *Session) whileStopped(w *Worker) (next transport.Next, proceed bool) {
	if s.engine.exclusive.busy.Load() {
		return transport.Read, true
	}
	s.awaitStart(w)
	return transport.Park, false
}

// awaitStart wakes the session when the world starts, or when the script becomes busy.
func (s *Session) awaitStart(w *Worker) {
	w.Store.NotifyStart(s.Peer.Wake)
	if s.engine.exclusive.busy.Load() { // the sessions that waited were woken before this one waited
		s.Peer.Wake()
	}
}

// waitsForScript reports whether a command waits for the end of a busy script instead of being
// refused: it may run meanwhile but needs the store, or the script is about to end. The session is
// parked then.
func (s *Session) waitsForScript(w *Worker, a *request) bool {
	if len(a.args) == 0 || s.engine.exclusive.busy.Load() && (a.cmd == nil || !s.engine.NeedsStore(&s.Client, a.cmd)) {
		return false // discarded input cannot be split off again
	}
	s.guard = resp.Guard{} // the command will be split off again
	w.Store.NotifyStart(s.Peer.Wake)
	return true
}

// runAgain parks the session, whose command could not run, until the world starts.
func (s *Session) runAgain(w *Worker) {
	w.WorldBusy = false
	if w.runLen > 0 {
		w.runLen-- // it will be counted again
	}
	s.guard = resp.Guard{}
	s.awaitStart(w)
}

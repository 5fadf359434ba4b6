package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// StopWorld implements [command.Host].
func (e *Engine) StopWorld(c *command.Call) bool { return workerOf(c.Worker).stopWorld() }

// stopWorld stops the world for the rest of the batch. It returns false if somebody else
// has stopped it; then the command is to be run again once that is over.
func (l *Worker) stopWorld() bool {
	if l.stopped {
		return true
	}
	l.stopped = l.Store.StopWorld()
	l.WorldBusy = !l.stopped
	return l.stopped
}

// startWorld starts the world at the end of a batch that has stopped it.
func (l *Worker) startWorld() {
	if l.stopped {
		l.stopped = false
		l.Store.StartWorld()
	}
}

// withStoppedWorld runs f on a worker of its own while nobody else is in the store.
func (e *Engine) withStoppedWorld(f func(l *Worker)) {
	l := e.takeWorker()
	defer e.returnWorker(l)
	for {
		for !l.Store.Enter() {
			open := make(chan struct{}, 1)
			l.Store.NotifyStart(func() { open <- struct{}{} })
			<-open
		}
		if l.Store.StopWorld() {
			break
		}
		l.Store.Leave()
	}
	defer func() {
		l.Store.Leave()
		if !e.isAborted() { // else Close starts it, once nobody is left to look
			l.Store.StartWorld()
		}
	}()
	f(l)
}

// isAborted reports whether what ran exclusively was aborted half way.
func (e *Engine) isAborted() bool {
	e.exclusive.mu.Lock()
	defer e.exclusive.mu.Unlock()
	return e.exclusive.aborted
}

// whileStopped says how a session goes on whose worker was not let into the store: it
// waits, unless a script has kept everybody waiting for long. Then it is fed, so that
// it can be told, and can kill the script.
func (s *Session) whileStopped(l *Worker) (next transport.Next, goesOn bool) {
	if s.engine.exclusive.busy.Load() {
		return transport.Read, true
	}
	s.awaitStart(l)
	return transport.Park, false
}

// awaitStart has the session woken when the world starts, or once it is told that it
// will be stopped for long.
func (s *Session) awaitStart(l *Worker) {
	l.Store.NotifyStart(s.Peer.Wake)
	if s.engine.exclusive.busy.Load() { // since then: those who wait have been woken before
		s.Peer.Wake()
	}
}

// waitsForScript reports whether a command waits for a script that is busy instead of
// being refused: if it may run meanwhile but needs the store nonetheless, and if the
// script is about to end. Then its session is parked.
func (s *Session) waitsForScript(l *Worker, a *request) bool {
	if len(a.args) == 0 || s.engine.exclusive.busy.Load() && (a.cmd == nil || !s.engine.NeedsStore(&s.Client, a.cmd)) {
		return false // what was thrown away cannot be split off again
	}
	s.guard = resp.Guard{} // it will be split off again
	l.Store.NotifyStart(s.Peer.Wake)
	return true
}

// runAgain parks the session, whose command could not be run, until the world starts.
func (s *Session) runAgain(l *Worker) {
	l.WorldBusy = false
	if l.runLen > 0 {
		l.runLen-- // it is counted again
	}
	s.guard = resp.Guard{}
	s.awaitStart(l)
}

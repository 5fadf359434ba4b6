package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// StopWorld implements [command.Host].
func (e *Engine) StopWorld(c *command.Call) bool { return laneOf(c.Worker).shut() }

// shut closes the gate for the rest of the batch. It returns false if somebody else
// has closed it; then the command is to be run again once that is over.
func (l *Lane) shut() bool {
	if l.gated {
		return true
	}
	l.gated = l.Store.CloseGate()
	l.ShutOut = !l.gated
	return l.gated
}

// letIn opens the gate at the end of a batch that has closed it.
func (l *Lane) letIn() {
	if l.gated {
		l.gated = false
		l.Store.OpenGate()
	}
}

// withStoppedWorld runs f on a lane of its own while nobody else is in the store.
func (e *Engine) withStoppedWorld(f func(l *Lane)) {
	l := e.slowLane()
	defer e.returnSlowLane(l)
	for {
		for !l.Store.Enter() {
			open := make(chan struct{}, 1)
			l.Store.WaitOpen(func() { open <- struct{}{} })
			<-open
		}
		if l.Store.CloseGate() {
			break
		}
		l.Store.Leave()
	}
	defer func() {
		l.Store.Leave()
		if !e.isTorn() { // else Close opens it, once nobody is left to look
			l.Store.OpenGate()
		}
	}()
	f(l)
}

// isTorn reports whether what ran alone was ended half way.
func (e *Engine) isTorn() bool {
	e.exclusive.mu.Lock()
	defer e.exclusive.mu.Unlock()
	return e.exclusive.torn
}

// closedGate says how a session goes on whose lane was not let into the store: it
// waits, unless a script has kept everybody waiting for long. Then it is fed, so that
// it can be told, and can kill the script.
func (s *Session) closedGate(l *Lane) (next transport.Next, goesOn bool) {
	if s.engine.exclusive.busy.Load() {
		return transport.Read, true
	}
	s.awaitGate(l)
	return transport.Park, false
}

// awaitGate has the session woken when the gate opens, or once it is told that it
// will be closed for long.
func (s *Session) awaitGate(l *Lane) {
	l.Store.WaitOpen(s.Peer.Wake)
	if s.engine.exclusive.busy.Load() { // since then: those who wait have been woken before
		s.Peer.Wake()
	}
}

// waitsOutBusy reports whether a command waits for a script that is busy instead of
// being refused: if it may run meanwhile but needs the store nonetheless, and if the
// script is about to end. Then its session is parked.
func (s *Session) waitsOutBusy(l *Lane, a *ahead) bool {
	if len(a.args) == 0 || s.engine.exclusive.busy.Load() && (a.cmd == nil || !s.engine.NeedsStore(&s.Client, a.cmd)) {
		return false // what was thrown away cannot be split off again
	}
	s.guard = resp.Guard{} // it will be split off again
	l.Store.WaitOpen(s.Peer.Wake)
	return true
}

// tryLater parks the session, whose command could not be run, until the gate is open.
func (s *Session) tryLater(l *Lane) {
	l.ShutOut = false
	if l.runLen > 0 {
		l.runLen-- // it is counted again
	}
	s.guard = resp.Guard{}
	s.awaitGate(l)
}

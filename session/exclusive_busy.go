package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// KillExclusive implements [command.Host]. It only ever meets a script that has been
// running for long: before that the caller waits until it is over, as everything does.
func (e *Engine) KillExclusive(c *command.Call) resp.Error {
	q := &e.exclusive
	q.mu.Lock()
	x := q.current
	q.mu.Unlock()
	if x == nil {
		return command.ErrNotBusy
	}
	if err := x.Kill(); err != "" {
		return err
	}
	// It ends at its next instruction, so that from now on others can wait. Another
	// script of the same transaction may keep them waiting again.
	e.startBusy(x, c.Store)
	return ""
}

// refuseBusy answers a command that may not run while a script keeps everybody
// waiting.
func refuseBusy(c *command.Call) bool {
	if c.Cmd.Flags&command.FlagAllowBusy != 0 && (c.Cmd.Name != "shutdown" || len(c.Args) == 2 && parse.IsWord(c.Args[1], "NOSAVE")) {
		return false
	}
	laneOf(c.Worker).reject(c, command.ErrBusy)
	return true
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

// EndExclusive implements [command.Host]: it ends what runs exclusively, whatever it has done, since the server is to stop
// at once, and cuts off all clients but the one who asked: nobody may see the half
// of what it did. Any goroutine may call it.
func (e *Engine) EndExclusive(asking *command.Client) {
	if !e.doomExclusive() {
		return
	}
	for _, s := range e.clients.list() {
		if &s.Client != asking {
			s.Kill()
		}
	}
}

// doomExclusive ends what runs exclusively, for good. It reports whether there was something.
func (e *Engine) doomExclusive() bool {
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	if q.current == nil {
		return false
	}
	q.torn = true
	q.current.Doom()
	return true
}

// EndScripts ends what runs alone, once no client is left to wait for it, and
// reports whether a script was ended half way, now or before. Memory then holds
// what no client may ever see, and must not be saved; nothing of it has been logged.
func (e *Engine) EndScripts() (torn bool) {
	e.doomExclusive()
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.current != nil {
		q.idle.Wait()
	}
	return q.torn
}

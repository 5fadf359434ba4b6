package commands

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

const (
	errNotBusy    resp.Error = "NOTBUSY No scripts in execution right now."
	errUnkillable resp.Error = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."

	killedByUser   = "Script killed by user with SCRIPT KILL..."
	killedByServer = "Script killed because the server stops..."
)

// begin notes the script that runs, so that it can be killed.
func (a *alone) begin(run *lua.Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.killed = a.killed && !a.begun // before it began, or else the one before it
	a.run, a.written, a.begun = run, false, true
	switch {
	case a.doomed:
		run.Kill(killedByServer)
	case a.killed:
		run.Kill(killedByUser)
	}
}

// end notes that it does not run any more.
func (a *alone) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.run = nil
}

// write notes that the script is about to write, after which it may not be killed.
// It returns false when it has been killed already.
func (a *alone) write() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.killed || a.doomed {
		return false
	}
	a.written = true
	return true
}

// kill ends the running script for a client, unless it has written.
func (a *alone) kill() resp.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.run == nil && a.begun:
		return errNotBusy
	case a.written:
		return errUnkillable
	}
	a.killed = true
	if a.run != nil {
		a.run.Kill(killedByUser)
	}
	return ""
}

// doom ends the running script whatever it has done, and all that come after it in
// the same transaction.
func (a *alone) doom() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.doomed = true
	if a.run != nil {
		a.run.Kill(killedByServer)
	}
}

// isDoomed reports whether what a has done is to be forgotten.
func (a *alone) isDoomed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.doomed
}

// scriptKill is SCRIPT KILL. It only ever meets a script that has been running for
// long: before that it waits at the gate as everything does.
func scriptKill(c *command.Call) {
	so := &engineOf(c.Server).alone
	so.mu.Lock()
	a := so.current
	so.mu.Unlock()
	if a == nil {
		c.Fail(errNotBusy)
		return
	}
	if err := a.kill(); err != "" {
		c.Fail(err)
		return
	}
	c.OK()
	// It ends at its next instruction, so that from now on others can wait. Another
	// script of the same transaction may keep them waiting again.
	engineOf(c.Server).startBusy(a, c.Store)
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
	if len(a.args) == 0 || s.engine.alone.busy.Load() && !s.needsStore(a.cmd) {
		return false // what was thrown away cannot be split off again
	}
	s.guard = resp.Guard{} // it will be split off again
	l.Store.WaitOpen(s.Peer.Wake)
	return true
}

// needsStore reports whether cmd, which may run while a script is busy, would wait
// for what the script holds.
func (s *transactionState) needsStore(cmd *command.Command) bool {
	if cmd == nil {
		return false
	}
	switch cmd.Name {
	case "watch":
		return true
	case "unwatch", "discard", "reset", "exec":
		return s.watched != nil
	}
	return false
}

// closedGate says how a session goes on whose lane was not let into the store: it
// waits, unless a script has kept everybody waiting for long. Then it is fed, so that
// it can be told, and can kill the script.
func (s *Session) closedGate(l *Lane) (next transport.Next, goesOn bool) {
	if s.engine.alone.busy.Load() {
		return transport.Read, true
	}
	s.awaitGate(l)
	return transport.Park, false
}

// awaitGate has the session woken when the gate opens, or once it is told that it
// will be closed for long.
func (s *Session) awaitGate(l *Lane) {
	l.Store.WaitOpen(s.Peer.Wake)
	if s.engine.alone.busy.Load() { // since then: those who wait have been woken before
		s.Peer.Wake()
	}
}

// killAlone ends what runs alone, whatever it has done, since the server is to stop
// at once, and cuts off all clients but the one who asked: nobody may see the half
// of what it did. Any goroutine may call it.
func (e *Engine) killAlone(asking *Session) {
	if !e.doomAlone() {
		return
	}
	for _, s := range e.clients.list() {
		if s != asking {
			s.Kill()
		}
	}
}

// doomAlone ends what runs alone, for good. It reports whether there was something.
func (e *Engine) doomAlone() bool {
	so := &e.alone
	so.mu.Lock()
	defer so.mu.Unlock()
	so.over = true
	if so.current == nil {
		return false
	}
	so.torn = true
	so.current.doom()
	return true
}

// EndScripts ends what runs alone, once no client is left to wait for it, and
// reports whether a script was ended half way, now or before. Memory then holds
// what no client may ever see, and must not be saved; nothing of it has been logged.
func (e *Engine) EndScripts() (torn bool) {
	e.doomAlone()
	so := &e.alone
	so.mu.Lock()
	defer so.mu.Unlock()
	for so.current != nil {
		so.idle.Wait()
	}
	return so.torn
}

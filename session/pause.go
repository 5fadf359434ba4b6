package session

import (
	"time"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// Pause implements [command.Pauses]: it delays the commands that the bits in halt select, for the
// duration d. If there is a pause, Pause can only extend it and delay more commands. Expiry is
// suspended meanwhile. A d of 0 begins no pause. st provides the clock and the timer.
func (e *Engine) Pause(st env.Store, d time.Duration, halt uint32) {
	p := &e.pause
	p.mu.Lock()
	defer p.mu.Unlock()
	m := e.Machine(st)
	until := m.Now().Add(d)
	if p.until == 0 && d == 0 {
		return
	}
	e.Halts.Or(halt)
	e.SuspendExpiry(true)
	if until <= p.until {
		return
	}
	if p.stop != nil {
		p.stop()
	}
	p.until, p.stop = until, m.AfterFunc(d, func() { e.endPause(until) })
}

// Unpause implements [command.Pauses]: it ends a CLIENT PAUSE.
func (e *Engine) Unpause() { e.endPause(0) }

// endPause ends the pause and resumes all commands, unless the pause was extended beyond until or
// has ended already. An until of 0 ends any pause. During a handover the commands stay delayed
// until [Engine.EndHandover]. Another goroutine wakes the sessions, since that takes a while if
// there are many, and the caller may be an event loop. Any goroutine may call endPause.
func (e *Engine) endPause(until limit.Instant) {
	p := &e.pause
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == 0 || until != 0 && until != p.until {
		return
	}
	p.stop()
	p.until, p.stop = 0, nil
	if !p.handover {
		e.lift()
	}
}

// PauseHandover delays commands that change something, and suspends expiry, until
// [Engine.EndHandover], regardless of any CLIENT PAUSE.
func (e *Engine) PauseHandover() {
	e.pause.mu.Lock()
	defer e.pause.mu.Unlock()
	e.pause.handover = true
	e.Halts.Or(command.HaltChanges)
	e.SuspendExpiry(true)
}

// EndHandover ends the delay that [Engine.PauseHandover] began, and resumes the commands. A
// CLIENT PAUSE continues.
func (e *Engine) EndHandover() {
	p := &e.pause
	p.mu.Lock()
	defer p.mu.Unlock()
	ends := p.handover && p.until == 0
	p.handover = false
	if ends {
		e.lift()
	}
}

// lift lets commands and expiry continue at once. A goroutine in the background wakes the sessions
// that have waited. The caller has locked the pause.
func (e *Engine) lift() {
	p := &e.pause
	p.released = append(p.released, p.behind...)
	p.behind, p.more = nil, true
	e.Halts.And(^command.HaltPaused)
	e.SuspendExpiry(false)
	if !p.releasing {
		p.releasing = true
		e.Spawn(e.release)
	}
}

// release wakes the sessions and calls the functions that waited for pauses that are over. It
// ends when no further pause has ended meanwhile.
func (e *Engine) release() {
	p := &e.pause
	for {
		p.mu.Lock()
		if !p.more {
			p.releasing = false
			p.mu.Unlock()
			return
		}
		released := p.released
		p.released, p.more = nil, false
		p.mu.Unlock()
		now := e.Options.Now()
		for _, s := range e.clients.list() {
			if w := s.wait.Load(); w != nil && w.RunAgain {
				s.restartLogin(now)
				w.Finish(nil)
			}
		}
		for _, f := range released {
			f(true)
		}
	}
}

// AfterPause implements [command.Pauses]: during a pause it keeps f until the end of the pause and
// returns true. Without a pause it returns false and drops f. It is for a change on behalf of a
// command that began before the pause. The caller has entered the store. f is called with true at
// the end of the pause, or with false if the server stops before that. If the server is stopping
// already, AfterPause itself calls f.
func (e *Engine) AfterPause(f func(proceed bool)) bool {
	if e.Halts.Load()&command.HaltPaused == 0 {
		return false
	}
	p := &e.pause
	p.mu.Lock()
	paused, keep := p.until != 0 || p.handover, !e.Draining.Load()
	if paused && keep {
		p.behind = append(p.behind, f)
	}
	p.mu.Unlock()
	if paused && !keep {
		f(false)
	}
	return paused
}

// dropPaused calls the functions that wait for the end of a pause with false, when the server
// stops. Their commands end without a reply.
func (e *Engine) dropPaused() {
	p := &e.pause
	p.mu.Lock()
	behind := p.behind
	p.behind = nil
	p.mu.Unlock()
	for _, f := range behind {
		f(false)
	}
}

// halted refuses, delays or lets pass the command of c, as the halts of the server require. It
// reports whether the command was refused or delayed.
func halted(c *command.Call) bool {
	halts := c.Server.Halts.Load()
	switch {
	case halts&command.HaltReplication != 0 && refuseHalted(c):
	case halts&command.HaltLoading != 0 && c.Cmd.Flags&(command.FlagLoading|command.FlagSyncing) == 0:
		workerOf(c.Worker).reject(c, errLoading)
	case halts&command.HaltPaused == 0 || c.Client.Marks&(command.MarkReplica|command.MarkPrimary) != 0:
		return false // a replica continues to report its offset, because a handover waits for it
	case c.Busy && refuseBusy(c):
	case halts&command.HaltAll == 0 && !c.MayChange(c.Cmd, c.Args):
		return false
	default:
		postpone(c, halts)
	}
	return true
}

// waitsForPause reports whether a call that has left its event loop has to wait for the end of a
// pause that begins meanwhile. It has to if it may change something and does not come from the
// primary.
func waitsForPause(c *command.Call, cmd *command.Command, args [][]byte) bool {
	return c.Client.Marks&command.MarkPrimary == 0 && c.MayChange(cmd, args)
}

// refuseHalted replies with an error to a command that the server's role in replication forbids,
// and reports whether it did.
func refuseHalted(c *command.Call) bool {
	err := c.Halted(c.Cmd, c.Args)
	if err != "" {
		workerOf(c.Worker).reject(c, err)
	}
	return err != ""
}

// postpone parks the session of c until the pause ends. halts are the halts that the caller has
// seen: if the pause has changed since, the session is woken at once. If the batch has asks for a
// Remote, postpone only makes the flight end before this command.
func postpone(c *command.Call, halts uint32) {
	if f := workerOf(c.Worker).flight; f != nil && len(f.slots) > 0 {
		f.postpone = true // the command is dispatched again after the decisions have arrived
		sessionOf(c.Client).guard = resp.Guard{}
		return
	}
	p := c.NewWait(0)
	p.RunAgain = true
	sessionOf(c.Client).guard = resp.Guard{} // the command will be split off again
	c.Park(p)
	if c.Server.Halts.Load()&command.HaltPaused != halts&command.HaltPaused {
		p.Finish(nil) // endPause may have looked at the session before it was parked
	}
}

// restartLogin sets the instant since which authentication is due to now, unless the client has
// authenticated. Without that [Engine.CloseOverdue] could close the client after a pause, before the
// client's AUTH runs. The session is parked.
func (s *Session) restartLogin(now limit.Instant) {
	if due := s.Locked.Load(); due != 0 {
		s.Locked.CompareAndSwap(due, int64(now))
	}
}

// postponed reports whether the session is parked because of a pause. Any goroutine may call it.
func (s *Session) postponed() bool {
	p := s.wait.Load()
	return p != nil && p.RunAgain
}

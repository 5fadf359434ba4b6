package commands

import (
	"math"
	"strings"
	"sync"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
)

// pause is CLIENT PAUSE while it lasts. What it is for is in the halts that every
// command looks at anyway, and whom it keeps waiting is in their sessions: a postponed
// command is parked, with its bytes left where they are, and is run from its first byte
// when the pause is over. Somebody who waits so costs no timer and no goroutine.
//
// Replies, errors and what is postponed are those of Redis 7.0: a command that is
// malformed or not allowed is refused at once, CLIENT UNPAUSE is postponed by ALL as
// everything is, and a second pause makes the first neither shorter nor less strict.
type pause struct {
	mu     sync.Mutex
	until  limit.Instant // guarded by mu: 0 without a pause
	stop   func() bool   // guarded by mu: stops the timer of its end
	behind []func(bool)  // guarded by mu: what goes on then beside sessions, see AfterPause

	// One goroutine at a time lets go on, however often pauses end.
	released  []func(bool) // guarded by mu: that were behind a pause that is over
	releasing bool         // guarded by mu: the goroutine is there
	more      bool         // guarded by mu: a pause has ended since it began to look
}

const (
	errPauseMode    resp.Error = "ERR CLIENT PAUSE mode must be WRITE or ALL"
	errPauseInteger resp.Error = "ERR timeout is not an integer or out of range"
	errPauseLong    resp.Error = "ERR timeout is out of range"
)

func clientPause(c *command.Call) {
	if len(c.Args) > 4 {
		c.Fail(command.SubcommandSyntax(c))
		return
	}
	halt := command.HaltAll
	if len(c.Args) == 4 && parse.IsWord(c.Args[3], "WRITE") {
		halt = command.HaltChanges
	} else if len(c.Args) == 4 && !parse.IsWord(c.Args[3], "ALL") {
		c.Fail(errPauseMode)
		return
	}
	d, err := parsePause(c.Args[2])
	if err != "" {
		c.Fail(err)
		return
	}
	// With the gate closed no other batch is in the middle of a command that it let
	// through before. In a transaction somebody may be there who waits for our locks.
	if !c.Client.Exclusive && !laneOf(c.Worker).shut() {
		return
	}
	engineOf(c.Server).pauseFor(c.Store, d, halt)
	c.OK()
}

// parsePause reads whole milliseconds, at most 292 years of them.
func parsePause(b []byte) (time.Duration, resp.Error) {
	n, ok := parse.Int(b)
	switch {
	case !ok:
		return 0, errPauseInteger
	case n < 0:
		return 0, resp.ErrTimeoutNegative
	case n > math.MaxInt64/int64(time.Millisecond):
		return 0, errPauseLong
	}
	return time.Duration(n) * time.Millisecond, ""
}

func clientUnpause(c *command.Call) {
	engineOf(c.Server).endPause(0)
	c.OK()
}

// pauseFor begins a pause, or adds to the one there is.
func (e *Engine) pauseFor(st command.Store, d time.Duration, halt uint32) {
	p := &e.pause
	p.mu.Lock()
	defer p.mu.Unlock()
	until := st.Now().Add(d)
	if p.until == 0 && d == 0 {
		return
	}
	e.Halts.Or(halt)
	e.HoldExpiry(true)
	if until <= p.until {
		return
	}
	if p.stop != nil {
		p.stop()
	}
	p.until, p.stop = until, st.AfterFunc(d, func() { e.endPause(until) })
}

// endPause lets everybody go on, unless the pause has been made longer than until or
// has ended already; 0 ends any. Waking many takes a while, and is done beside the
// caller, who may be on a loop. Any goroutine may call it.
func (e *Engine) endPause(until limit.Instant) {
	p := &e.pause
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == 0 || until != 0 && until != p.until {
		return
	}
	p.stop()
	p.released = append(p.released, p.behind...)
	p.until, p.stop, p.behind, p.more = 0, nil, nil, true
	e.Halts.And(^command.HaltPaused)
	e.HoldExpiry(false)
	if !p.releasing {
		p.releasing = true
		e.Spawn(e.release)
	}
}

// release wakes all that a pause which is over has kept waiting.
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
		for _, s := range e.clients.list() {
			if w := s.parked.Load(); w != nil && w.Again {
				w.Finish(nil)
			}
		}
		for _, f := range released {
			f(true)
		}
	}
}

// AfterPause keeps f for the end of the pause, if there is one: for what would change
// something on behalf of a command that began before it. The caller is in the store, so
// that no pause begins meanwhile. f is told whether to go on; if the server stops before
// the pause ends, it is not to.
func (e *Engine) AfterPause(f func(goOn bool)) bool {
	if e.Halts.Load()&command.HaltPaused == 0 {
		return false
	}
	p := &e.pause
	p.mu.Lock()
	paused, keep := p.until != 0, !e.Draining.Load()
	if paused && keep {
		p.behind = append(p.behind, f)
	}
	p.mu.Unlock()
	if paused && !keep {
		f(false)
	}
	return paused
}

// forgoPaused ends, without an answer, what waits behind a pause when the server stops.
func (e *Engine) forgoPaused() {
	p := &e.pause
	p.mu.Lock()
	behind := p.behind
	p.behind = nil
	p.mu.Unlock()
	for _, f := range behind {
		f(false)
	}
}

// halted refuses or postpones the command that is about to run, and reports whether it
// did.
func halted(c *command.Call) bool {
	halts := c.Server.Halts.Load()
	switch {
	case halts&command.HaltLoading != 0 && c.Cmd.Flags&command.FlagLoading == 0:
		laneOf(c.Worker).reject(c, errLoading)
	case halts&command.HaltPaused == 0:
		return false
	case c.Busy && refuseBusy(c):
	case halts&command.HaltAll == 0 && !c.MayChange(c.Cmd, c.Args):
		return false
	default:
		postpone(c, halts)
	}
	return true
}

// postpone parks the session until halts, of which a pause is one, have changed.
func postpone(c *command.Call, halts uint32) {
	p := c.NewWait()
	p.Again = true
	sessionOf(c.Client).guard = resp.Guard{} // it will be split off again
	c.Park(p)
	if c.Server.Halts.Load()&command.HaltPaused != halts&command.HaltPaused {
		p.Finish(nil) // whoever ended the pause may have looked before
	}
}

// postponed reports whether the session waits for the end of a pause. Any goroutine may
// call it.
func (s *Session) postponed() bool {
	p := s.parked.Load()
	return p != nil && p.Again
}

// scriptMayChange asks what a script declares, and without that what it is called by.
func (l *Lane) scriptMayChange(cmd *command.Command, args [][]byte) bool {
	if f := l.scriptFlags(cmd, args); f.Declared {
		return !f.NoWrites
	}
	return cmd.Flags&command.FlagReadonly == 0
}

// scriptFlags returns what the script of a call declares.
func (l *Lane) scriptFlags(cmd *command.Command, args [][]byte) (f lua.Flags) {
	if !strings.HasPrefix(cmd.Name, "evalsha") {
		return lua.Declared(args[1])
	}
	if sha, ok := parseSHA(args[1]); ok {
		if s := l.script(sha); s != nil {
			f = s.Flags()
		}
	}
	return f
}

package commands

import (
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Persistence is what keeps effects, as the commands see it. A nil one keeps
// nothing. Its methods may be called from any goroutine; only Save waits for a disk.
type Persistence interface {
	// Keep sees to it that everything up to position is as safe as the operator
	// wants, if that takes no longer than handing it to the kernel.
	Keep(position uint64) Kept
	// Await is Keep with a waker, which is woken when there is news if the outcome is
	// KeptLater, upon which Await is to be called again.
	Await(position uint64, p transport.Peer) Kept
	// Position is behind everything that has had an effect so far.
	Position() uint64
	// Fault is why effects cannot be kept now; "" if they can.
	Fault() string

	// Save writes a snapshot and returns when it is done. Start begins to write one
	// beside everything else and reports false if one is being written.
	Save() error
	Start() bool
	// LastSave is when the last snapshot was complete, in civil Unix seconds.
	LastSave() int64
	// Info is what INFO persistence shows.
	Info() []InfoField
}

// InfoField is a line of INFO.
type InfoField struct{ Name, Value string }

// Kept is what has become of effects.
type Kept uint8

// The outcomes.
const (
	KeptNow Kept = iota
	KeptLater
	KeptNever
)

// recording is what a store that has a journal offers beyond [Store].
type recording interface {
	// TakePosition is the journal's position behind the effects since the last call,
	// 0 if there were none. Effects counts records of effects, ever.
	TakePosition() uint64
	Effects() uint64
	Refuses() bool
}

// effectReply is a reply whose command had an effect.
type effectReply struct{ from, to int }

// noteEffect remembers that the reply since mark must not be sent unless its effect
// is kept.
func (l *Lane) noteEffect(mark int) {
	if n := l.journal.Effects(); n != l.effects {
		l.effects = n
		l.owed = append(l.owed, effectReply{mark, len(l.w.Buf)})
	}
}

// keep returns the position that the replies of this batch have to wait for, 0 if
// they may leave. Replies whose effects cannot be kept become errors.
func (l *Lane) keep() (barrier uint64) {
	position := max(l.journal.TakePosition(), l.answered)
	l.answered, l.effects = 0, l.journal.Effects()
	if position == 0 {
		l.owed = l.owed[:0]
		return 0
	}
	p := l.engine.opts.Persistence
	switch p.Keep(position) {
	case KeptLater:
		barrier = position
	case KeptNever:
		l.retract(misconf(p.Fault()))
	}
	l.owed = l.owed[:0]
	return barrier
}

// retract puts an error in the place of every reply that is owed an effect.
func (l *Lane) retract(e resp.Error) {
	out := resp.Writer{Proto: l.w.Proto}
	from := 0
	for _, r := range l.owed {
		out.Raw(l.w.Buf[from:r.from])
		if r.to > r.from { // else the client wants no reply
			out.Error(e)
		}
		from = r.to
		l.engine.errors.Add(1)
	}
	out.Raw(l.w.Buf[from:])
	l.w.Buf = append(l.w.Buf[:0], out.Buf...)
}

// refused answers a command that may not run because its effect could not be kept.
// Those that decide ask for themselves, since one that only looks is answered.
func (l *Lane) refused(c *Ctx) bool {
	if c.Cmd.Flags&FlagWrite == 0 || c.Cmd.Group != "generic" && c.Cmd.Group != "server" || !l.journal.Refuses() {
		return false
	}
	l.reject(c, misconf(l.engine.opts.Persistence.Fault()))
	return true
}

// errNotKept stands for the fault of the journal until it is known which.
const errNotKept resp.Error = "MISCONF"

func misconf(fault string) resp.Error {
	return resp.Error("MISCONF Errors writing to the AOF file: " + fault)
}

// Durable implements transport.Handler. A client whose effects turn out to be lost
// while it waited is not told anything: its connection is cut.
func (e *Engine) Durable(position uint64, p transport.Peer) bool {
	if e.opts.Persistence == nil {
		return true
	}
	switch e.opts.Persistence.Await(position, p) {
	case KeptNow:
		return true
	case KeptNever:
		p.Abort()
	}
	return false
}

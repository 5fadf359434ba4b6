package commands

import (
	"sync"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// Persistence is what keeps effects, as the commands see it. A nil one keeps
// nothing. Its methods may be called from any goroutine; only Save waits for a disk.
type Persistence interface {
	// Await sees to it that everything up to position is as safe as the operator wants,
	// if that takes no longer than handing it to the kernel. Else the outcome is Pending,
	// and p is woken when there is news, upon which Await is to be called again.
	Await(position uint64, p transport.Peer) transport.Outcome
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

// recording is what a store that has a journal offers beyond [Store].
type recording interface {
	// TakePosition is the journal's position behind the effects since the last call,
	// 0 if there were none. Effects counts records of effects, ever.
	TakePosition() uint64
	Effects() uint64
	// Unsettled is how many bytes of effects that makes.
	Unsettled() int
	Refuses() bool
}

// effectReply is a reply whose command had an effect.
type effectReply struct{ from, to int }

// noteEffect remembers that the reply since mark must not be sent unless its effect
// is kept.
func (l *Lane) noteEffect(mark int) {
	if n := l.journal.Effects(); n != l.effects || l.asideEffect {
		l.effects, l.asideEffect = n, false
		l.owed = append(l.owed, effectReply{mark, len(l.w.Buf)})
	}
}

// owe returns the position that the replies of this batch have to wait for, 0 if
// they may leave, and remembers which of them it is for.
func (s *Session) owe(l *Lane) (barrier uint64) {
	barrier = max(l.journal.TakePosition(), l.answered)
	l.answered, l.effects = 0, l.journal.Effects()
	s.settled()
	if barrier != 0 && len(l.owed) > 0 {
		s.owed = owedLists.Get().(*owedReplies)
		s.owed.list = append(s.owed.list, l.owed...)
	}
	l.owed = l.owed[:0]
	return barrier
}

// owedReplies are the replies of one session that wait for their effects.
type owedReplies struct{ list []effectReply }

// owedLists lends lists: a session has one for as long as replies of it wait, which is
// much shorter than it lives, and asks for one after every batch.
var owedLists = sync.Pool{New: func() any { return new(owedReplies) }}

// settled gives the list back.
func (s *Session) settled() {
	if s.owed != nil {
		s.owed.list = s.owed.list[:0]
		owedLists.Put(s.owed)
		s.owed = nil
	}
}

// Settle implements transport.Settler: replies whose effects cannot be kept become
// errors.
func (s *Session) Settle(is transport.Outcome, out []byte, refs []shared.Ref) ([]byte, []shared.Ref) {
	if is == transport.Lost {
		out, refs = s.retract(out, refs, misconf(s.engine.opts.Persistence.Fault())+outcomeUnknown)
	}
	s.settled()
	return out, refs
}

// retract puts an error in the place of every reply in out that is owed an effect.
func (s *Session) retract(out []byte, refs []shared.Ref, e resp.Error) ([]byte, []shared.Ref) {
	w := resp.Writer{Proto: s.proto} // the errors are counted whether the client wants to see them or not
	from := 0
	keep := func(to int) {
		for ; len(refs) > 0 && refs[0].At < to; refs = refs[1:] {
			refs[0].At += len(w.Buf) - from
			w.Refs = append(w.Refs, refs[0])
		}
		w.Raw(out[from:to])
	}
	var owed []effectReply
	if s.owed != nil {
		owed = s.owed.list
	}
	for _, r := range owed {
		keep(r.from)
		if r.to > r.from { // else the client wants no reply
			w.Error(e)
		}
		for ; len(refs) > 0 && refs[0].At < r.to; refs = refs[1:] {
			refs[0].Release()
		}
		from = r.to
		s.engine.errors.Add(e, resp.OfServer)
	}
	keep(len(out))
	return w.Buf, w.Refs
}

// refused answers a command that may not run because its effect could not be kept.
// Those that decide ask for themselves, since one that only looks is answered.
func (l *Lane) refused(c *Ctx) bool {
	if c.Cmd.Flags&FlagWrite == 0 || c.Cmd.Group != "generic" && c.Cmd.Group != "server" || !l.journal.Refuses() {
		return false
	}
	l.reject(c, c.refusal())
	return true
}

// lacksJournal reports whether effects cannot be kept and t, whose keys are held, would
// have some: then nothing of it may happen, as in Redis, no message of it either. Limiters
// that are all it has, and a script that is, are asked one by one: what only looks is
// answered, and of the others none has an effect.
func (c *Ctx) lacksJournal(t *transaction) bool {
	if !c.journal.Refuses() {
		return false
	}
	scripts, limiters, others := 0, 0, 0
	for _, q := range t.queue {
		switch {
		case !c.mayChange(q.cmd, q.args):
		case q.cmd.runsScript():
			scripts++
		case q.cmd.Flags&FlagWrite == 0:
			others++ // a message
		case q.cmd.Categories&CatRateLimit == 0 && q.cmd.Flags&FlagModule == 0:
			return true
		default:
			limiters++
		}
	}
	return scripts > 0 && scripts+limiters+others > 1 || limiters > 0 && others > 0
}

// errNotKept stands for the fault of the journal until it is known which.
const errNotKept resp.Error = "MISCONF"

// errManyEffects refuses what would make the record of a transaction too large.
const errManyEffects resp.Error = "ERR the transaction changes too much to be kept as one record"

// turnEffects is after how many bytes of effects a turn ends, so that few of them
// wait in memory for the disk even if values are large.
const turnEffects = 1 << 20

// refusal says why c may not have effects: while the journal has no fault it is the
// transaction that has had too many.
func (c *Ctx) refusal() resp.Error {
	fault := c.server.opts.Persistence.Fault()
	if fault == "" && c.Client.exclusive {
		return errManyEffects
	}
	return misconf(fault)
}

// outcomeUnknown ends the error of a command that has run before its effect could not be
// kept: others may have seen the effect, so it is not taken back, and the snapshot that
// mends the fault keeps it. A restart before that loses it. An error without these words
// says that the command has changed nothing.
const outcomeUnknown resp.Error = "; the outcome of this command is unknown"

// misconf refuses what cannot be kept. Where the fault is over by the time that it is to
// be named, fault is "".
func misconf(fault string) resp.Error {
	if fault == "" {
		fault = "what was written last is lost"
	}
	return resp.Error("MISCONF Errors writing to the AOF file: " + fault)
}

// Durable implements transport.Handler.
func (e *Engine) Durable(position uint64, p transport.Peer) transport.Outcome {
	if e.opts.Persistence == nil {
		return transport.Kept
	}
	return e.opts.Persistence.Await(position, p)
}

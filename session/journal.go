package session

import (
	"sync"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// noteEffect remembers that the reply since mark must not be sent unless its effect
// is kept.
func (l *Worker) noteEffect(mark int) {
	if n := l.Journal.Effects(); n != l.effects || l.coroutineEffect {
		l.effects, l.coroutineEffect = n, false
		l.pending = append(l.pending, durableReply{mark, len(l.w.Buf)})
	}
}

// takeBarrier returns the position that the replies of this batch have to wait for, 0 if
// they may leave, and remembers which of them it is for.
func (s *Session) takeBarrier(l *Worker) (barrier uint64) {
	barrier = max(l.Journal.TakePosition(), l.answered)
	l.answered, l.effects = 0, l.Journal.Effects()
	s.forgetPending()
	if barrier != 0 && len(l.pending) > 0 {
		s.pending = pendingLists.Get().(*pendingReplies)
		s.pending.list = append(s.pending.list, l.pending...)
	}
	l.pending = l.pending[:0]
	return barrier
}

// pendingLists lends lists: a session has one for as long as replies of it wait, which is
// much shorter than it lives, and asks for one after every batch.
var pendingLists = sync.Pool{New: func() any { return new(pendingReplies) }}

// forgetPending gives the list back.
func (s *Session) forgetPending() {
	if s.pending != nil {
		s.pending.list = s.pending.list[:0]
		pendingLists.Put(s.pending)
		s.pending = nil
	}
}

// Settle implements transport.Settler: replies whose effects cannot be kept become
// errors.
func (s *Session) Settle(is transport.Outcome, out []byte, refs []shared.Ref) ([]byte, []shared.Ref) {
	if is == transport.Lost {
		out, refs = s.replacePending(out, refs, s.engine.whyLost())
	}
	s.forgetPending()
	return out, refs
}

// replacePending puts an error in the place of every reply in out whose effect is not kept.
func (s *Session) replacePending(out []byte, refs []shared.Ref, e resp.Error) ([]byte, []shared.Ref) {
	w := resp.Writer{Proto: s.Proto} // the errors are counted whether the client wants to see them or not
	from := 0
	keep := func(to int) {
		for ; len(refs) > 0 && refs[0].At < to; refs = refs[1:] {
			refs[0].At += len(w.Buf) - from
			w.Refs = append(w.Refs, refs[0])
		}
		w.Raw(out[from:to])
	}
	var pending []durableReply
	if s.pending != nil {
		pending = s.pending.list
	}
	for _, r := range pending {
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

// whyLost says why replies cannot be sent whose effects have happened.
func (e *Engine) whyLost() resp.Error {
	p := e.Options.Persistence
	if fault := p.Fault(); fault != "" || !p.Awaited() {
		return command.Misconf(fault) + outcomeUnknown
	}
	return errTooFew
}

// errTooFew is for a write that the replicas of repl-ack-replies have not acknowledged in time.
const errTooFew resp.Error = "NOREPLICAS Not enough replicas have acknowledged the write in time; it stands on this server"

// outcomeUnknown ends the error of a command that has run before its effect could not be
// kept: others may have seen the effect, so it is not taken back, and the snapshot that
// mends the fault keeps it. A restart before that loses it. An error without these words
// says that the command has changed nothing.
const outcomeUnknown resp.Error = "; the outcome of this command is unknown"

// Durable implements transport.Handler.
func (e *Engine) Durable(position uint64, p transport.Peer) transport.Outcome {
	if e.Options.Persistence == nil {
		return transport.Kept
	}
	return e.Options.Persistence.Await(position, p)
}

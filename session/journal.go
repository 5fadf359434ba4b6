package session

import (
	"sync"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// noteEffect checks whether the command whose reply begins at mark had an effect. If so, it
// records that the reply must not be sent before the effect is persisted.
func (w *Worker) noteEffect(mark int) {
	if n := w.Journal.Effects(); n != w.effects || w.coroutineEffect {
		w.effects, w.coroutineEffect = n, false
		w.pending = append(w.pending, durableReply{mark, len(w.out.Buf)})
	}
}

// takeBarrier returns the journal position that must be persisted before the replies of this
// batch are sent, or 0 if they may be sent at once. It moves the list of replies with effects
// from the worker to the session.
func (s *Session) takeBarrier(w *Worker) (barrier uint64) {
	barrier = max(w.Journal.TakePosition(), w.answered)
	w.answered, w.effects = 0, w.Journal.Effects()
	s.forgetPending()
	if barrier != 0 && len(w.pending) > 0 {
		s.pending = pendingLists.Get().(*pendingReplies)
		s.pending.list = append(s.pending.list, w.pending...)
	}
	w.pending = w.pending[:0]
	return barrier
}

// pendingLists is a pool of lists. A session has a list only while replies wait, which is much
// shorter than the session lives, but it may need one after every batch.
var pendingLists = sync.Pool{New: func() any { return new(pendingReplies) }}

// forgetPending returns the session's list of pending replies to the pool.
func (s *Session) forgetPending() {
	if s.pending != nil {
		s.pending.list = s.pending.list[:0]
		pendingLists.Put(s.pending)
		s.pending = nil
	}
}

// Settle implements [transport.Settler]: after the outcome [transport.Lost] it replaces the
// pending replies in out and refs by errors, and releases their shared values. It returns the new
// output.
func (s *Session) Settle(is transport.Outcome, out []byte, refs []shared.Ref) ([]byte, []shared.Ref) {
	if is == transport.Lost {
		out, refs = s.replacePending(out, refs, s.engine.whyLost())
	}
	s.forgetPending()
	return out, refs
}

// replacePending replaces every reply in out whose effect is lost by the error e, counts these
// errors, and returns the new output. It modifies refs: it releases the values of the replaced
// replies, and adjusts the positions of the others.
func (s *Session) replacePending(out []byte, refs []shared.Ref, e resp.Error) ([]byte, []shared.Ref) {
	w := resp.Writer{Proto: s.Proto} // OnError is nil, because the errors are counted below, even if the client has turned off replies
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
		if r.to > r.from { // the range is empty if the client has turned off replies
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

// whyLost returns the error for replies that cannot be sent because their effects, which have
// happened, are not persisted or not acknowledged by enough replicas.
func (e *Engine) whyLost() resp.Error {
	p := e.Options.Persistence
	if fault := p.Fault(); fault != "" || !p.Awaited() {
		return command.Misconf(fault) + outcomeUnknown
	}
	return errTooFew
}

// errTooFew is the error of a write that too few replicas have acknowledged in time
// (repl-ack-replies).
const errTooFew resp.Error = "NOREPLICAS Not enough replicas have acknowledged the write in time; it stands on this server"

// outcomeUnknown ends the error of a command that has run before the server found that its effect
// could not be persisted. Other clients may have seen the effect, so it is not undone, and the
// snapshot that repairs the fault will contain it. A restart before that snapshot loses the
// effect. An error without this text means that the command has changed nothing.
const outcomeUnknown resp.Error = "; the outcome of this command is unknown"

// Durable implements [transport.Handler]: it returns whether the effects up to position in the
// journal are persisted, and acknowledged by replicas, as configured. Without persistence it
// returns [transport.Kept]. While the result is Pending, p is woken when it may have changed.
func (e *Engine) Durable(position uint64, p transport.Peer) transport.Outcome {
	if e.Options.Persistence == nil {
		return transport.Kept
	}
	return e.Options.Persistence.Await(position, p)
}

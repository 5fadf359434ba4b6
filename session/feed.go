package session

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Feed implements [transport.Session]: it runs the commands in in and appends their replies to
// out. The result says how many bytes were consumed, what the replies have to wait for, and how
// the transport continues. Feed never blocks.
func (s *Session) Feed(worker transport.Worker, in, out []byte) transport.Turn {
	w := worker.(*Worker)
	w.out = resp.Writer{Buf: out, Proto: s.Proto, Ledger: s.engine.Options.Ledger, OnError: w.OnError, Room: cap(out)}
	w.ctx.Cmd, w.derivedKeys = nil, w.derivedKeys[:0]
	next, consumed := s.turn(w, in)
	barrier := uint64(0)
	if w.Journal != nil {
		barrier = s.takeBarrier(w)
	}
	t := transport.Turn{Out: w.out.Buf, Refs: w.out.Refs, Consumed: consumed, Barrier: barrier, Next: next}
	w.out.Buf, w.out.Refs = nil, nil
	if len(in) > largeInput {
		w.forgetInput()
	}
	return t
}

// turn writes pending replies and messages of the session to the output, then runs a batch of
// commands from in. It returns how the transport continues, and the number of bytes of in that
// were consumed.
func (s *Session) turn(w *Worker, in []byte) (transport.Next, int) {
	if s.Killed.Load() {
		return transport.Close, 0
	}
	p, mid := s.wait.Load(), s.partialMessage
	if p != nil && !mid && s.resume(p, w) {
		p = s.wait.Load()
	}
	if p != nil && !mid && p.ReadsBeside() {
		return s.parkedNext(p), 0
	}
	mark := len(w.out.Buf)
	// This check comes before the outbox is drained, so that the drained messages include all
	// messages whose arrival ends the waiting.
	waits := p == nil && len(in) > 0 && s.engine.Awaits(&s.Client)
	if s.drainOutbox(w, &w.out, turnBytes) {
		return transport.Again, 0
	}
	if mid { // the output began with the rest of a message
		mark = len(w.out.Buf)
	}
	if p != nil && p.Slice == nil {
		if !s.resumeBefore(p, w, mark) {
			return s.parkedNext(p), 0
		}
		if s.Invalidated.Load() {
			return transport.Again, 0 // messages that have arrived meanwhile are sent before the next reply
		}
		p = nil
	}
	switch {
	case s.Closing:
		return transport.Close, 0
	case waits, p == nil && s.holdsBack(len(in)):
		return transport.Park, 0
	}
	if w.Busy = !w.enter(); w.Busy {
		if next, proceed := s.whileStopped(w); !proceed {
			return next, 0
		}
		if p != nil {
			s.awaitStart(w)
			return transport.Park, 0
		}
	}
	now := w.Store.Refresh()
	if len(in) > 0 {
		s.active.Store(int64(now))
	}
	next, consumed := s.batch(w, p, in)
	w.endGroup(s)
	w.groupBegan = 0
	if w.flight != nil {
		next = s.launch(w, next)
	}
	w.endBatch()
	w.startWorld()
	s.noteCommand(w.ctx.Cmd)
	s.noteKept()
	unfinished := next == transport.Read && consumed < len(in)
	s.notePartial(int64(now), unfinished, consumed > 0)
	if unfinished {
		s.engine.noteLongInput(len(in) - consumed)
	}
	if s.pump != nil && next == transport.Read {
		next = s.fillPump(w)
	}
	if !w.Busy {
		w.leave()
	}
	return next, consumed
}

// batch runs commands from in until the input or the turn is used up, or the client may not
// continue. If p is not nil, batch first runs the next slice of the command of p. It returns how
// the transport continues, and the number of bytes of in that were consumed. A panic in a handler
// closes only this client.
func (s *Session) batch(w *Worker, p *command.Wait, in []byte) (next transport.Next, consumed int) {
	mark := 0 // the offset at which the reply of the running command begins in the output
	w.Work = 0
	defer func() {
		if r := recover(); r != nil {
			s.engine.Recovered(r)
			w.ReleaseLocks()
			w.out.Cut(mark)
			w.out.Error(resp.ErrInternal)
			next = transport.Close
		}
	}()
	if p != nil && !s.runSlice(w, p) {
		return transport.Again, 0
	}
	consumed = s.refuseOverfull()
	for ran := 0; ; {
		w.endGroup(s)
		swallowed, err := s.split(w, in[consumed:])
		w.beginGroup()
		if len(w.requests) > 1 && !w.Busy {
			w.prefetch(s.Selected())
		}
		base := consumed
		for i := range w.requests {
			if w.Busy && s.waitsForScript(w, &w.requests[i]) {
				return transport.Park, consumed
			}
			ran++
			w.ran = i + 1
			before := consumed
			consumed = base + w.requests[i].end
			mark = len(w.out.Buf)
			if w.flight == nil {
				next = s.runOne(w, &w.requests[i], ran)
			} else {
				next = s.runInFlight(w, &w.requests[i], ran)
			}
			if next == transport.Read {
				continue
			}
			if w.WorldBusy {
				s.runAgain(w)
				return transport.Park, before
			}
			if s.postponed() || w.flight != nil && w.flight.postpone {
				return next, before
			}
			if i+1 == len(w.requests) && err == "" {
				return next, base + swallowed
			}
			s.guard = resp.Guard{} // the guard starts again, because commands that have not run will be split off again
			return next, consumed
		}
		consumed = base + swallowed
		if err != "" {
			mark = len(w.out.Buf)
			if w.out.Error(err); err == resp.ErrTLS {
				s.engine.Log.Warn("closed a connection that speaks TLS to a port without it", "client", s.Addr())
			}
			s.SuppressReply(&w.out, mark)
			return transport.Close, consumed
		}
		if len(w.requests) == 0 {
			if s.overUnauthenticated(swallowed) {
				return transport.Close, consumed
			}
			return transport.Read, consumed
		}
	}
}

// runOne runs the command a, which is the ran-th of its batch, and delivers messages that have
// arrived meanwhile. It returns Read if the batch may continue with the next command. Any other
// result ends the batch.
func (s *Session) runOne(w *Worker, a *request, ran int) transport.Next {
	mark := len(w.out.Buf)
	w.dispatch(s, a)
	if w.WorldBusy {
		return transport.Park
	}
	if p := s.wait.Load(); p != nil {
		return s.parkedNext(p)
	}
	s.SuppressReply(&w.out, mark)
	if w.Journal != nil {
		w.noteEffect(mark)
	}
	if w.Publishes {
		w.Server.AfterCommand(&w.Worker)
	}
	if w.Lines.Size() > monitoredEnough {
		w.Server.BatchEnd(&w.Worker)
	}
	more := !s.Closing && s.drainOutbox(w, &w.out, turnBytes)
	switch {
	case s.Closing, w.out.Size(mark) > command.MaxReply, s.overUnauthenticated(a.size + len(w.out.Buf) - mark):
		return transport.Close
	case more, w.out.Length() >= turnBytes, ran >= turnCommands, w.Work >= turnWork:
		return transport.Again
	case w.Journal != nil && w.Journal.Unsettled() >= turnEffects:
		return transport.Again
	}
	return transport.Read
}

// runInFlight is runOne for a server with a Remote: the command may add asks to the flight of the
// batch. If the flight has asks, a command that needs all earlier commands to be finished does not
// run: it is postponed, and runInFlight returns Park.
func (s *Session) runInFlight(w *Worker, a *request, ran int) transport.Next {
	f, fence := w.flight, w.fences(a)
	switch {
	case len(f.slots) == 0:
		f.from = len(w.out.Buf)
	case fence:
		f.postpone = true
		s.guard = resp.Guard{} // the command will be split off from the input again
		return transport.Park
	}
	f.reply = s.Reply
	next := s.runOne(w, a, ran)
	switch {
	case f.postpone:
		return transport.Park
	case len(f.slots) == 0:
		return next
	}
	// f.reply is the reply mode before the command. If it is neither on nor off, CLIENT REPLY
	// SKIP suppresses the reply of this command, although the mode is on again afterwards.
	f.silent = s.Reply != command.ReplyOn || f.reply != command.ReplyOn && f.reply != command.ReplyOff
	if next == transport.Read && (len(f.slots) >= maxSlots || f.silent || fence) {
		return transport.Park
	}
	return next
}

// overUnauthenticated adds moved to the number of bytes that an unauthenticated client has sent
// and received, and reports whether the sum is more than unauthBytes. It returns false for an
// authenticated client.
func (s *Session) overUnauthenticated(moved int) bool {
	if s.Admitted() {
		return false
	}
	s.Spent += moved
	return s.Spent > unauthBytes
}

// Closed implements [transport.Session]: it removes the session and stops what the session was
// waiting for.
func (s *Session) Closed() {
	s.stopWaiting()
	s.closePump()
	s.engine.clients.remove(s)
	s.engine.Server.Closed(&s.Client)
}

// stopWaiting cancels the wait of the session, discards its queued messages, and takes its
// transaction and watched keys out of the memory statistics.
func (s *Session) stopWaiting() {
	if p := s.wait.Load(); p != nil {
		if p.Cancel != nil {
			p.Cancel()
		}
		p.Gone.Store(true)
		p.Forget() // Forget discards the reply if there is one; otherwise the goroutine that writes the reply discards it
	}
	s.closeOutbox()
	s.engine.kept.Add(-s.kept.Load())
}

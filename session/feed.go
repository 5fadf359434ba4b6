package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Feed runs the commands in in and appends their replies to out: the seam of
// package transport. It never blocks.
func (s *Session) Feed(worker transport.Worker, in, out []byte) transport.Turn {
	l := worker.(*Worker)
	l.w = resp.Writer{Buf: out, Proto: s.Proto, Ledger: s.engine.Options.Ledger, OnError: l.OnError, Room: cap(out)}
	l.ctx.Cmd, l.policyKeys = nil, l.policyKeys[:0]
	next, consumed := s.turn(l, in)
	barrier := uint64(0)
	if l.Journal != nil {
		barrier = s.takeBarrier(l)
	}
	t := transport.Turn{Out: l.w.Buf, Refs: l.w.Refs, Consumed: consumed, Barrier: barrier, Next: next}
	l.w.Buf, l.w.Refs = nil, nil
	if len(in) > largeInput {
		l.forgetInput()
	}
	return t
}

// turn brings the session up to date, then runs a batch.
func (s *Session) turn(l *Worker, in []byte) (transport.Next, int) {
	if s.Killed.Load() {
		return transport.Close, 0
	}
	p, mid := s.wait.Load(), s.partialMessage
	if p != nil && !mid && s.resume(p, l) {
		p = s.wait.Load()
	}
	if p != nil && !mid && p.ReadsBeside() {
		return s.parkedNext(p), 0
	}
	mark := len(l.w.Buf)
	// This comes before the mail is taken, which then has all that there is to be told.
	waits := p == nil && len(in) > 0 && s.engine.Awaits(&s.Client)
	if s.drainOutbox(l, &l.w, turnBytes) {
		return transport.Again, 0
	}
	if mid { // it began with the rest of a message
		mark = len(l.w.Buf)
	}
	if p != nil && p.Slice == nil {
		if !s.resumeBefore(p, l, mark) {
			return s.parkedNext(p), 0
		}
		if s.Told.Load() {
			return transport.Again, 0 // it has yet to be told what there is by now
		}
		p = nil
	}
	switch {
	case s.Closing:
		return transport.Close, 0
	case waits, p == nil && s.holdsBack(len(in)):
		return transport.Park, 0
	}
	if l.Busy = !l.Store.Enter(); l.Busy {
		if next, goesOn := s.whileStopped(l); !goesOn {
			return next, 0
		}
		if p != nil {
			s.awaitStart(l)
			return transport.Park, 0
		}
	}
	now := l.Store.Refresh()
	if len(in) > 0 {
		s.active.Store(int64(now))
	}
	next, consumed := s.batch(l, p, in)
	l.endGroup(s)
	l.groupBegan = 0
	if l.flight != nil {
		next = s.launch(l, next)
	}
	l.endBatch()
	l.startWorld()
	s.noteCommand(l.ctx.Cmd)
	s.noteKept()
	unfinished := next == transport.Read && consumed < len(in)
	s.notePartial(int64(now), unfinished, consumed > 0)
	if unfinished {
		s.engine.noteLongInput(len(in) - consumed)
	}
	if s.pump != nil && next == transport.Read {
		next = s.fillPump(l)
	}
	if !l.Busy {
		l.Store.Leave()
	}
	return next, consumed
}

// batch runs commands until the input, the turn or the client's right to go on is
// used up; before them the next slice of p, unless that is nil. Anything that goes wrong
// inside a handler ends this client only.
func (s *Session) batch(l *Worker, p *command.Wait, in []byte) (next transport.Next, consumed int) {
	mark := 0 // where the reply of the running command begins
	l.Work = 0
	defer func() {
		if r := recover(); r != nil {
			s.engine.Recovered(r)
			l.Store.Unlock()
			l.w.Cut(mark)
			l.w.Error(resp.ErrInternal)
			next = transport.Close
		}
	}()
	if p != nil && !s.runSlice(l, p) {
		return transport.Again, 0
	}
	consumed = s.refuseOverfull()
	for ran := 0; ; {
		l.endGroup(s)
		swallowed, err := s.split(l, in[consumed:])
		l.beginGroup()
		if len(l.requests) > 1 && !l.Busy {
			l.prefetch(s.Selected())
		}
		base := consumed
		for i := range l.requests {
			if l.Busy && s.waitsForScript(l, &l.requests[i]) {
				return transport.Park, consumed
			}
			ran++
			l.ran = i + 1
			before := consumed
			consumed = base + l.requests[i].end
			mark = len(l.w.Buf)
			if l.flight == nil {
				next = s.runOne(l, &l.requests[i], ran)
			} else {
				next = s.runInFlight(l, &l.requests[i], ran)
			}
			if next == transport.Read {
				continue
			}
			if l.WorldBusy {
				s.runAgain(l)
				return transport.Park, before
			}
			if s.postponed() || l.flight != nil && l.flight.postpone {
				return next, before
			}
			if i+1 == len(l.requests) && err == "" {
				return next, base + swallowed
			}
			s.guard = resp.Guard{} // what was split beyond will be split again
			return next, consumed
		}
		consumed = base + swallowed
		if err != "" {
			mark = len(l.w.Buf)
			if l.w.Error(err); err == resp.ErrTLS {
				s.engine.Log.Warn("closed a connection that speaks TLS to a port without it", "client", s.Addr())
			}
			s.SuppressReply(&l.w, mark)
			return transport.Close, consumed
		}
		if len(l.requests) == 0 {
			if s.overUnauthenticated(swallowed) {
				return transport.Close, consumed
			}
			return transport.Read, consumed
		}
	}
}

// runOne runs one command, the ran-th of its batch, and says whether the batch may
// go on.
func (s *Session) runOne(l *Worker, a *request, ran int) transport.Next {
	mark := len(l.w.Buf)
	l.dispatch(s, a)
	if l.WorldBusy {
		return transport.Park
	}
	if p := s.wait.Load(); p != nil {
		return s.parkedNext(p)
	}
	s.SuppressReply(&l.w, mark)
	if l.Journal != nil {
		l.noteEffect(mark)
	}
	if l.Publishes {
		l.Server.AfterCommand(&l.Worker)
	}
	if l.Lines.Size() > monitoredEnough {
		l.Server.BatchEnd(&l.Worker)
	}
	more := !s.Closing && s.drainOutbox(l, &l.w, turnBytes)
	switch {
	case s.Closing, l.w.Size(mark) > command.MaxReply, s.overUnauthenticated(a.size + len(l.w.Buf) - mark):
		return transport.Close
	case more, l.w.Length() >= turnBytes, ran >= turnCommands, l.Work >= turnWork:
		return transport.Again
	case l.Journal != nil && l.Journal.Unsettled() >= turnEffects:
		return transport.Again
	}
	return transport.Read
}

// runInFlight is runOne where a Remote decides.
func (s *Session) runInFlight(l *Worker, a *request, ran int) transport.Next {
	f, fence := l.flight, l.fences(a)
	switch {
	case len(f.slots) == 0:
		f.from = len(l.w.Buf)
	case fence:
		f.postpone = true
		s.guard = resp.Guard{} // it will be split off again
		return transport.Park
	}
	f.reply = s.Reply
	next := s.runOne(l, a, ran)
	switch {
	case f.postpone:
		return transport.Park
	case len(f.slots) == 0:
		return next
	}
	// Of the modes other than on and off a command finds only that behind CLIENT REPLY SKIP,
	// and leaves another.
	f.silent = s.Reply != command.ReplyOn || f.reply != command.ReplyOn && f.reply != command.ReplyOff
	if next == transport.Read && (len(f.slots) >= mostSlots || f.silent || fence) {
		return transport.Park
	}
	return next
}

// overUnauthenticated adds up what a client that has yet to authenticate moves in
// and out, and reports whether it is too much.
func (s *Session) overUnauthenticated(moved int) bool {
	if s.Admitted() {
		return false
	}
	s.Spent += moved
	return s.Spent > unauthBytes
}

// Closed forgets the session and stops what it was waiting for.
func (s *Session) Closed() {
	s.stopWaiting()
	s.closePump()
	s.engine.clients.remove(s)
	s.engine.Server.Closed(&s.Client)
}

// stopWaiting stops what the session was waiting for, and forgets what it was to be told.
func (s *Session) stopWaiting() {
	if p := s.wait.Load(); p != nil {
		if p.Cancel != nil {
			p.Cancel()
		}
		p.Gone.Store(true)
		p.Forget() // if it has been answered; else whoever answers does
	}
	s.closeOutbox()
	s.engine.kept.Add(-s.kept.Load())
}

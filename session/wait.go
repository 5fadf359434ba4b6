package session

import (
	"bytes"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Park implements [command.Host].
func (e *Engine) Park(p *command.Wait) {
	s := sessionOf(p.Client)
	s.wait.Store(p)
	if s.ProxyOf == nil { // it counts at once, for those who ask Keep; noteKept says exactly how much
		s.kept.Add(int64(p.Kept))
		e.kept.Add(int64(p.Kept))
	}
}

// Keep implements [command.Host].
func (e *Engine) Keep(bytes int64) bool {
	bound := e.Limits().ClientMemory
	for {
		kept := e.kept.Load()
		if bytes > 0 && bound > 0 && kept+bytes > bound {
			return false
		}
		if e.kept.CompareAndSwap(kept, kept+bytes) {
			return true
		}
	}
}

// parkedNext is how the transport is to treat a session whose command is parked: a wait
// that may never end is over when the client hangs up or the server stops.
func (s *Session) parkedNext(p *command.Wait) transport.Next {
	if p.Slice != nil {
		return transport.Again
	}
	if p.RunAgain || p.OnTimeout != nil && !s.engine.Draining.Load() {
		return transport.Wait
	}
	return transport.Park
}

// resume writes the reply of a parked command if it has come.
func (s *Session) resume(p *command.Wait, l *Worker) bool {
	if p.State.Load() != command.WaitAnswered {
		return false
	}
	defer s.noteKept() // what the wait kept is no reason any more to close the client
	if p.RunAgain {
		s.wait.Store(nil)
		return true
	}
	if p.Render != nil {
		s.wait.Store(nil)
		p.Render(&l.ctx)
		return true
	}
	mark := len(l.w.Buf)
	l.w.Reply(p.Reply)
	p.Reply = resp.Reply{}
	if p.Resume != nil {
		p.Resume(&l.w)
	}
	if p.Decided != nil {
		if p.Decided.Decision.Refused != 0 {
			l.counts[p.Cmd.ID].Denied.Add(1)
		}
		l.Server.Decided(&l.Worker, s.Selected(), p.Decided, s.engine.Options.Now())
	}
	switch n := &l.counts[p.Cmd.ID]; {
	case p.Rejected: // it was counted when it began to wait, and has not run
		n.Rejected.Add(1)
		n.Calls.Add(-1)
	case p.Failed:
		n.Failed.Add(1)
	}
	l.noteAnswered(p)
	s.Closing = s.Closing || p.Broken
	s.wait.Store(nil)
	s.SuppressReply(&l.w, mark)
	if l.Journal != nil && !p.NoEffect {
		l.answered = s.engine.Options.Persistence.Position()
		l.pending = append(l.pending, durableReply{mark, len(l.w.Buf)})
	}
	return true
}

// resumeBefore is resume, with the reply before the messages that were written since
// mark: what a command has told its own client comes behind its reply.
func (s *Session) resumeBefore(p *command.Wait, l *Worker, mark int) bool {
	if p.State.Load() != command.WaitAnswered {
		return false
	}
	mail := bytes.Clone(l.w.Buf[mark:])
	l.w.Buf = l.w.Buf[:mark]
	s.resume(p, l)
	l.w.Raw(mail)
	return true
}

// runSlice runs the next slice of a command, as if it had just been dispatched. It reports
// whether the command is done.
func (s *Session) runSlice(l *Worker, p *command.Wait) (done bool) {
	mark := len(l.w.Buf)
	c := &l.ctx
	c.Client, c.Cmd, c.Args, c.Failed = &s.Client, p.Cmd, nil, false
	l.beginErrors()
	began := l.Server.Options.Stopwatch()
	more := p.Slice(c)
	p.Took.Add(int64(l.Server.Options.Stopwatch() - began))
	l.endErrors(p.Cmd)
	if more {
		return false
	}
	l.noteAnswered(p)
	s.wait.Store(nil)
	s.SuppressReply(&l.w, mark)
	return true
}

// Unblock implements [command.Host]. The answer is found on another goroutine: the
// caller may be on a loop.
func (e *Engine) Unblock(cl *command.Client, withError bool) bool {
	p := sessionOf(cl).wait.Load()
	return p != nil && p.Interrupt(withError)
}

// UnblockAll ends every wait that can be ended, with an error: the server is about to be a
// replica, on which nothing that was waited for is decided. HaltReadOnly is set before.
func (e *Engine) UnblockAll() {
	for _, s := range e.clients.list() {
		if p := s.wait.Load(); p != nil {
			p.Interrupt(true)
		}
	}
}

// Drain ends every wait, so that a server that stops leaves no client without an answer or the end of
// its connection. No command waits from then on.
func (e *Engine) Drain() {
	e.Draining.Store(true)
	e.dropPaused()
	e.wakeHeldBack()
	for _, s := range e.clients.list() {
		if p := s.wait.Load(); p != nil {
			p.Stop()
		}
	}
}

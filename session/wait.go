package session

import (
	"bytes"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Park implements [command.Waits]: it makes the client of p wait for p, and adds p.Kept to the
// memory that waits take.
func (e *Engine) Park(p *command.Wait) {
	s := sessionOf(p.Client)
	s.wait.Store(p)
	if s.ProxyOf == nil { // p.Kept is counted at once, because of the bound of Keep; noteKept later sets the exact number
		s.kept.Add(int64(p.Kept))
		e.kept.Add(int64(p.Kept))
	}
}

// Keep implements [command.Waits]: it adds bytes, which may be negative, to the memory that waits
// and transactions take. It returns false and adds nothing if that would exceed
// maxmemory-clients.
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

// parkedNext returns how the transport treats a session whose command p is parked: Again for a
// command that runs in slices, Wait for a command that may wait forever, and Park for any other. The
// transport ends a Wait when the client disconnects or the server stops.
func (s *Session) parkedNext(p *command.Wait) transport.Next {
	if p.Slice != nil {
		return transport.Again
	}
	if p.RunAgain || p.OnTimeout != nil && !s.engine.Draining.Load() {
		return transport.Wait
	}
	return transport.Park
}

// resume ends the wait p if it has been answered: it writes the reply to the output, applies what
// the command has changed in the session, and counts the call. It returns false if p has not been
// answered yet.
func (s *Session) resume(p *command.Wait, w *Worker) bool {
	if p.State.Load() != command.WaitAnswered {
		return false
	}
	defer s.noteKept() // the memory of the wait must not count any more when clients are evicted
	if p.RunAgain {
		s.wait.Store(nil)
		return true
	}
	if p.Render != nil {
		s.wait.Store(nil)
		p.Render(&w.ctx)
		return true
	}
	mark := len(w.out.Buf)
	w.out.Reply(p.Reply)
	p.Reply = resp.Reply{}
	if p.Resume != nil {
		p.Resume(&w.out)
	}
	if p.Decided != nil {
		if p.Decided.Decision.Refused != 0 {
			w.counts[p.Cmd.ID].Denied.Add(1)
		}
		w.Server.Decided(&w.Worker, s.Selected(), p.Decided, s.engine.Options.Now())
	}
	switch n := &w.counts[p.Cmd.ID]; {
	case p.Rejected: // the call was counted when it began to wait, but has not run
		n.Rejected.Add(1)
		n.Calls.Add(-1)
	case p.Failed:
		n.Failed.Add(1)
	}
	w.noteAnswered(p)
	s.Closing = s.Closing || p.Broken
	s.wait.Store(nil)
	s.SuppressReply(&w.out, mark)
	if w.Journal != nil && !p.NoEffect {
		w.answered = s.engine.Options.Persistence.Position()
		w.pending = append(w.pending, durableReply{mark, len(w.out.Buf)})
	}
	return true
}

// resumeBefore ends the wait p as resume does, and writes the reply before the messages that were
// written to the output since mark: messages that a command has sent to its own client come after
// its reply. It returns false, and writes nothing, if p was not answered yet.
func (s *Session) resumeBefore(p *command.Wait, w *Worker, mark int) bool {
	if p.State.Load() != command.WaitAnswered {
		return false
	}
	mail := bytes.Clone(w.out.Buf[mark:])
	w.out.Buf = w.out.Buf[:mark]
	s.resume(p, w)
	w.out.Raw(mail)
	return true
}

// runSlice runs the next slice of the command of p, as if the command had just been dispatched.
// It reports whether the command is done; then the session no longer waits.
func (s *Session) runSlice(w *Worker, p *command.Wait) (done bool) {
	mark := len(w.out.Buf)
	c := &w.ctx
	c.Client, c.Cmd, c.Args, c.Failed = &s.Client, p.Cmd, nil, false
	w.beginErrors()
	began := w.Server.Options.Stopwatch()
	more := p.Slice(c)
	p.Took.Add(int64(w.Server.Options.Stopwatch() - began))
	w.endErrors(p.Cmd)
	if more {
		return false
	}
	w.noteAnswered(p)
	s.wait.Store(nil)
	s.SuppressReply(&w.out, mark)
	return true
}

// Unblock implements [command.Waits]: it ends the wait of cl, with an UNBLOCKED error or like a
// timeout, and reports whether there was a wait that can be ended. Another goroutine writes the
// reply, since the caller may be an event loop.
func (e *Engine) Unblock(cl *command.Client, withError bool) bool {
	p := sessionOf(cl).wait.Load()
	return p != nil && p.Interrupt(withError)
}

// UnblockAll ends every wait that can be ended, with an error. The server calls it when it is
// about to become a replica: then the primary decides what the clients wait for. HaltReadOnly
// must be set before.
func (e *Engine) UnblockAll() {
	for _, s := range e.clients.list() {
		if p := s.wait.Load(); p != nil {
			p.Interrupt(true)
		}
	}
}

// Drain ends every wait that can be ended early, so that a server that stops leaves each client
// with a reply or a closed connection. It also ends commands that wait on other goroutines for the
// end of a pause, without a reply, and wakes sessions whose input was held back. From then on no
// command begins to wait for an event.
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

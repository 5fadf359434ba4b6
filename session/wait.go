package session

import (
	"bytes"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Park implements [command.Host].
func (e *Engine) Park(p *command.Wait) { sessionOf(p.Client).parked.Store(p) }

// rest is how the transport is to treat a session whose command is parked: a wait
// that may never end is over when the client hangs up or the server stops.
func (s *Session) rest(p *command.Wait) transport.Next {
	if p.Slice != nil {
		return transport.Again
	}
	if p.Again || p.GiveUp != nil && !s.engine.Draining.Load() {
		return transport.Wait
	}
	return transport.Park
}

// unpark writes the reply of a parked command if it has come.
func (s *Session) unpark(p *command.Wait, l *Lane) bool {
	if p.State.Load() != command.ParkedDone {
		return false
	}
	if p.Again {
		s.parked.Store(nil)
		return true
	}
	mark := len(l.w.Buf)
	l.w.Reply(p.Reply)
	p.Reply = resp.Reply{}
	if p.Resume != nil {
		p.Resume(&l.w)
	}
	if p.Refused != nil {
		l.Server.Refused(&l.Worker, s.Selected(), p.Refused, s.engine.Opts.Now())
	}
	if p.Failed {
		l.counts[p.Cmd.Id].Failed.Add(1)
	}
	s.Closing = s.Closing || p.Broken
	s.parked.Store(nil)
	s.Hush(&l.w, mark)
	if l.Journal != nil && !p.Looked {
		l.answered = s.engine.Opts.Persistence.Position()
		l.owed = append(l.owed, effectReply{mark, len(l.w.Buf)})
	}
	return true
}

// unparkBefore is unpark, with the reply before the mail that has been written since
// mark: what a command has told its own client comes behind its reply.
func (s *Session) unparkBefore(p *command.Wait, l *Lane, mark int) bool {
	if p.State.Load() != command.ParkedDone {
		return false
	}
	mail := bytes.Clone(l.w.Buf[mark:])
	l.w.Buf = l.w.Buf[:mark]
	s.unpark(p, l)
	l.w.Raw(mail)
	return true
}

// goOn runs the next slice of a command, as if it had just been dispatched. It reports
// whether the command is done.
func (s *Session) goOn(l *Lane, p *command.Wait) (done bool) {
	mark := len(l.w.Buf)
	c := &l.ctx
	c.Client, c.Cmd, c.Args, c.Failed = &s.Client, p.Cmd, nil, false
	l.beginErrors()
	more := p.Slice(c)
	l.endErrors(p.Cmd)
	if more {
		return false
	}
	s.parked.Store(nil)
	s.Hush(&l.w, mark)
	return true
}

// Unblock implements [command.Host]. The answer is found beside the caller, who may be on a
// loop.
func (e *Engine) Unblock(cl *command.Client, withError bool) bool {
	p := sessionOf(cl).parked.Load()
	return p != nil && p.Interrupt(withError)
}

// Drain answers every waiting command as if its time were over, so that a server
// that stops owes nobody an answer. No command waits from then on.
func (e *Engine) Drain() {
	e.Draining.Store(true)
	e.forgoPaused()
	for _, s := range e.clients.list() {
		if p := s.parked.Load(); p != nil && p.GiveUp != nil && p.Claim() {
			p.End(false)
		}
	}
}

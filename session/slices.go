package session

import "github.com/cellserver/cellserver/commands/command"

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

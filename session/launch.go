package session

import (
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// launch submits what the batch has asked, and returns how the transport is to go on. If all
// is decided by then the replies are written at once.
func (s *Session) launch(l *Worker, next transport.Next) transport.Next {
	f := l.flight
	f.drop()
	if len(f.slots) == 0 {
		return next
	}
	s.Closing = s.Closing || next == transport.Close
	if s.wait.Load() != nil {
		s.engine.Log.Error("a command waits that should have waited for those before it", "command", l.ctx.Cmd.Name)
		f.clear()
		return transport.Close
	}
	l.flight = newFlight()
	f.local = append(f.local, l.w.Buf[f.from:]...)
	l.w.Cut(f.from)
	p := &command.Wait{Client: &s.Client, Cmd: f.slots[len(f.slots)-1].cmd, Proto: s.Proto, Kept: f.size()}
	p.Render = func(c *command.Call) { workerOf(c.Worker).render(s, f) }
	f.wait = p
	f.left.Store(2)
	s.wait.Store(p)
	s.engine.Options.Remote.Submit(f.asks[:f.used], f.together, f.done)
	if f.left.Add(-1) > 0 {
		return transport.Park
	}
	s.wait.Store(nil)
	l.render(s, f)
	switch p := s.wait.Load(); {
	case p != nil:
		return s.parkedNext(p)
	case s.Closing:
		return transport.Close
	case next == transport.Park:
		return transport.Again
	}
	return next
}

// settle submits what a command in the background has asked, waits until all is decided, and
// replies. The session in acts for its own.
func (l *Worker) settle(in *Session) {
	f := l.flight
	f.drop()
	if len(f.slots) == 0 {
		return
	}
	l.flight = newFlight()
	f.local = append(f.local, l.w.Buf...)
	l.w.Cut(0)
	decided := make(chan struct{})
	in.engine.Options.Remote.Submit(f.asks[:f.used], f.together, func() { close(decided) })
	<-decided
	l.render(in, f)
}

// render writes the replies of a flight in which all is decided. A panic ends its client only.
func (l *Worker) render(s *Session, f *flight) {
	w, c := &l.w, &l.ctx
	mark, current := len(w.Buf), len(w.Buf)
	l.Store.Refresh()
	c.Client, c.Args = &s.Client, nil
	exclusive := c.Client.Exclusive
	defer func() {
		if r := recover(); r != nil {
			s.engine.Recovered(r)
			w.Cut(current)
			w.Error(resp.ErrInternal)
			s.Closing = true
		}
		c.Client.Exclusive = exclusive
		w.Proto = s.Proto
		l.endBatch() // which has keys of the flight
		if f.silent {
			w.Cut(mark)
		}
		if s.wait.Load() != nil { // what it waits for now is answered as it would have been
			s.Reply = f.reply
		}
		f.recycle()
	}()
	c.Client.Exclusive = len(f.slots) > 1 // one that is alone may wait
	written := 0
	for i := range f.slots {
		at := min(f.slots[i].at, len(f.local)) // what CLIENT REPLY has suppressed is not there
		w.Raw(f.local[written:at])
		written, current = at, len(w.Buf)
		l.answer(&f.slots[i])
		if w.Size(mark) > command.MaxReply {
			w.Cut(mark)
			s.Closing = true
			return
		}
	}
	w.Raw(f.local[written:])
}

// answer writes the reply of one command, and keeps the books as run does.
func (l *Worker) answer(a *slot) {
	c, cmd := &l.ctx, a.cmd
	if cmd != l.runCmd { // it is counted already
		l.flushRun()
		l.runCmd = cmd
	}
	c.Cmd, c.Failed, l.w.Proto = cmd, false, a.proto
	l.beginErrors()
	var began time.Duration
	if a.calls > 0 {
		began = l.Server.Options.Stopwatch()
	}
	c.Conclude(a.ask, cmd.Answer)
	if a.calls > 0 {
		l.note(c.Client, cmd, nil, a.took+l.Server.Options.Stopwatch()-began, a.calls)
	}
	l.endErrors(cmd)
}

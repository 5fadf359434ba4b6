package session

import (
	"time"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// launch submits the asks of the batch to the Remote, and parks the session until all asks are
// decided. next says how the transport would continue without asks. The result says how the
// transport has to continue. If all asks are decided at once, launch writes the replies itself, and
// the session is not parked.
func (s *Session) launch(w *Worker, next transport.Next) transport.Next {
	f := w.flight
	f.drop()
	if len(f.slots) == 0 {
		return next
	}
	s.Closing = s.Closing || next == transport.Close
	if s.wait.Load() != nil {
		s.engine.Log.Error("a command waits that should have waited for those before it", "command", w.ctx.Cmd.Name)
		f.clear()
		return transport.Close
	}
	w.flight = newFlight()
	f.local = append(f.local, w.out.Buf[f.from:]...)
	w.out.Cut(f.from)
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
	w.render(s, f)
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

// settle submits the asks of a command in the background to the Remote, blocks until all asks are
// decided, and writes the reply. If the command has no asks, settle does nothing. in is the proxy
// that acts for the client.
func (w *Worker) settle(in *Session) {
	f := w.flight
	f.drop()
	if len(f.slots) == 0 {
		return
	}
	w.flight = newFlight()
	f.local = append(f.local, w.out.Buf...)
	w.out.Cut(0)
	decided := make(chan struct{})
	in.engine.Options.Remote.Submit(f.asks[:f.used], f.together, func() { close(decided) })
	<-decided
	w.render(in, f)
}

// render writes the replies of the flight f, whose asks are decided, to the output for s, and
// recycles f. It closes the client of s if a handler panics, or if the replies are longer than
// [command.MaxReply] in total.
func (w *Worker) render(s *Session, f *flight) {
	out, c := &w.out, &w.ctx
	mark, current := len(out.Buf), len(out.Buf)
	w.Store.Refresh()
	c.Client, c.Args = &s.Client, nil
	exclusive := c.Client.Exclusive
	defer func() {
		if r := recover(); r != nil {
			s.engine.Recovered(r)
			out.Cut(current)
			out.Error(resp.ErrInternal)
			s.Closing = true
		}
		c.Client.Exclusive = exclusive
		out.Proto = s.Proto
		w.endBatch() // endBatch comes first, because it uses keys of the flight
		if f.silent {
			out.Cut(mark)
		}
		if s.wait.Load() != nil { // the reply of a new wait is subject to the reply mode in which the wait began
			s.Reply = f.reply
		}
		f.recycle()
	}()
	c.Client.Exclusive = len(f.slots) > 1 // if the flight has only one command, that command may wait
	written := 0
	for i := range f.slots {
		at := min(f.slots[i].at, len(f.local)) // f.local lacks the replies that CLIENT REPLY has suppressed
		out.Raw(f.local[written:at])
		written, current = at, len(out.Buf)
		w.answer(&f.slots[i])
		if out.Size(mark) > command.MaxReply {
			out.Cut(mark)
			s.Closing = true
			return
		}
	}
	out.Raw(f.local[written:])
}

// answer writes the reply of the command of slot a, and counts errors and time as run does. The
// call itself was counted when it asked.
func (w *Worker) answer(a *slot) {
	c, cmd := &w.ctx, a.cmd
	if cmd != w.runCmd { // the call was counted when it asked, so count is not used
		w.flushRun()
		w.runCmd = cmd
	}
	c.Cmd, c.Failed, w.out.Proto = cmd, false, a.proto
	w.beginErrors()
	var began time.Duration
	if a.calls > 0 {
		began = w.Server.Options.Stopwatch()
	}
	c.Conclude(a.ask, cmd.Answer)
	if a.calls > 0 {
		w.note(c.Client, cmd, nil, a.took+w.Server.Options.Stopwatch()-began, a.calls)
	}
	w.endErrors(cmd)
}

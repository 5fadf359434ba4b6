package session

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

// Offload implements [command.Work]: it parks the client of c and runs f on a goroutine in the
// background, at most maxSlow such commands at once. f writes the reply. size returns the number
// of bytes that the reply needs, and is nil for a short reply. Before f runs, the client's
// permission and the role of the server are checked again.
func (e *Engine) Offload(c *command.Call, size func(st env.Store) int, f func(st env.Store, w *resp.Writer)) {
	p := c.NewWait(0)
	p.Args, p.Unbegun = command.CloneArgs(c.Args), make(chan struct{})
	p.NoEffect = c.Cmd.Flags&command.FlagWrite == 0
	primary := c.Client.Marks&command.MarkPrimary != 0
	changes := waitsForPause(c, c.Cmd, c.Args)
	if remember := e.ReadsElsewhere(c); remember != nil {
		look := f
		f = func(st env.Store, w *resp.Writer) {
			remember()
			look(st, w)
			remember()
		}
	}
	c.Park(p)
	var begin func()
	begin = func() {
		memory, ok := e.takeTurn(e.slowSlots, p, size)
		if !ok {
			return
		}
		defer e.endTurn(e.slowSlots, memory)
		p.Do(func(st env.Store) {
			if changes && e.AfterPause(p.ResumeOrDrop(func() { e.Spawn(begin) })) {
				return
			}
			p.Finish(func(w *resp.Writer) {
				if p.Gone.Load() {
					return
				}
				if err := p.Forbidden(st); err != "" {
					w.Error(err)
					return
				}
				if !primary && p.Cmd.Flags&command.FlagWrite != 0 && e.Halts.Load()&command.HaltReadOnly != 0 {
					w.Error(command.ErrReadOnly) // the server has become a replica in the meantime
					return
				}
				if memory != nil {
					w.Pieces, w.Defers = memory, true
					defer w.CopyDeferred()
				}
				began := e.Options.Stopwatch()
				f(st, w)
				p.Took.Add(int64(e.Options.Stopwatch() - began))
			})
		})
	}
	e.Spawn(begin)
}

// Background implements [command.Work]: it runs do, which is the running command or the rest of
// it, on a goroutine in the background. The session is parked meanwhile, and a proxy acts for it.
// Unlike during an exclusive command, other clients continue: do locks the keys that it needs, as
// it would have done on the event loop.
func (e *Engine) Background(c *command.Call, do func(c *command.Call)) {
	s := sessionOf(c.Client)
	in := s.proxy()
	in.Background = true
	cmd, args := c.Cmd, workerOf(c.Worker).takeArgs(c.Args)
	changes := waitsForPause(c, cmd, args)
	size := func(st env.Store) int { return replySize(&in.Client, st, cmd, args) }
	transaction := e.Transfer(&s.Client, &in.Client)
	p := c.NewWait(command.ArgsCost(args) + transaction)
	if transaction == 0 { // EXEC must not be refused, because it has a transaction to end
		p.Unbegun = make(chan struct{})
	}
	slots := e.slotsOf(cmd)
	p.Resume = func(out *resp.Writer) {
		s.merge(in)
		out.Proto = s.Proto
	}
	c.Park(p)
	var begin func()
	begin = func() {
		memory, ok := e.takeTurn(slots, p, size)
		if !ok {
			resp.Recycle(args)
			return
		}
		defer e.endTurn(slots, memory)
		e.withWorker(s.ID, func(w *Worker) {
			if changes && e.AfterPause(p.ResumeOrDrop(func() { e.Spawn(begin) })) {
				return
			}
			w.runInBackground(p, in, func() {
				if memory != nil && w.flight == nil { // on a server with a Remote, no reply is long
					w.out.Pieces, w.out.Defers = memory, transaction == 0 // a transaction keeps everything locked until its reply is complete
				}
				w.ctx.Cmd, w.ctx.Args = cmd, args
				// EXEC checks each of its commands itself. The server may have become a replica
				// meanwhile.
				if transaction > 0 || !w.forbidden(&w.ctx) && !refuseHalted(&w.ctx) {
					do(&w.ctx)
				}
				if w.flight != nil {
					w.settle(in)
				}
				w.out.CopyDeferred()
			})
			resp.Recycle(args)
		})
	}
	e.Spawn(begin)
}

func (e *Engine) slotsOf(cmd *command.Command) chan struct{} {
	switch {
	case cmd.Files:
		return e.fileSlots
	case cmd.Urgent:
		return e.urgent
	}
	return e.slots
}

// runInBackground runs do as the proxy session in, and replies to p. It does nothing if p was
// refused meanwhile. A panic becomes an error reply and closes the client.
func (w *Worker) runInBackground(p *command.Wait, in *Session, do func()) {
	if !p.Claim() {
		return
	}
	w.out = resp.Writer{Proto: in.Proto, Ledger: w.Server.Options.Ledger, OnError: w.OnError}
	w.ctx = command.Call{Worker: &w.Worker, Client: &in.Client, W: &w.out}
	if w.Journal != nil {
		w.Journal.TakePosition() // TakePosition discards the position of earlier calls
	}
	defer func() {
		if r := recover(); r != nil {
			engineOf(w.Server).Recovered(r)
			w.ReleaseLocks()
			w.out.Cut(0)
			w.out.Error(resp.ErrInternal)
			p.Broken = true
		}
		if w.flight != nil {
			w.flight.clear() // clear drops the asks of a call that has panicked
		}
		w.endBatch()
		reply := w.out.Take()
		w.ctx.Client, w.ctx.Args = nil, nil
		p.NoEffect = w.Journal != nil && w.Journal.TakePosition() == 0
		p.Answer(func(out *resp.Writer) { out.Reply(reply) })
	}()
	do()
}

// replySize returns the approximate number of bytes that the reply of a command copies. It is
// called before the reply is written in the background, to wait for that much memory. Values may
// change meanwhile: memory beyond the estimate is counted while the reply is written.
func replySize(cl *command.Client, st env.Store, cmd *command.Command, args [][]byte) int {
	if cmd.ReplySize != nil {
		return cmd.ReplySize(cl, st, cmd, args)
	}
	return command.CopiedBy(st, cl.Selected(), cmd, args)
}

// Rerun implements [command.Work]: it runs and times a command again that was counted before and
// has left its event loop before it changed anything. The call is not counted twice.
func (e *Engine) Rerun(c *command.Call, cmd *command.Command) {
	workerOf(c.Worker).beginErrors()
	e.Timed(c, cmd.Run)
	workerOf(c.Worker).endErrors(cmd)
}

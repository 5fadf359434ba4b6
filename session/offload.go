package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

// Offload implements [command.Host].
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
			if changes && e.AfterPause(p.OrDrop(func() { e.Spawn(begin) })) {
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
					w.Error(command.ErrReadOnly) // it has become a replica meanwhile
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

// Background implements [command.Host]: it runs do, which is the running command or what is left to do of it, on a
// goroutine in the background. The session is parked meanwhile and acts through a
// proxy. Unlike in an exclusive command everybody else goes on: do locks what it
// needs as it would have done on the loop.
func (e *Engine) Background(c *command.Call, do func(c *command.Call)) {
	s := sessionOf(c.Client)
	in := s.proxy()
	in.Background = true
	cmd, args := c.Cmd, workerOf(c.Worker).takeArgs(c.Args)
	changes := waitsForPause(c, cmd, args)
	size := func(st env.Store) int { return replySize(&in.Client, st, cmd, args) }
	transaction := e.Transfer(&s.Client, &in.Client)
	p := c.NewWait(command.ArgsCost(args) + transaction)
	if transaction == 0 { // EXEC has a transaction to end
		p.Unbegun = make(chan struct{})
	}
	slots := e.slotsOf(cmd)
	p.Resume = func(w *resp.Writer) {
		s.merge(in)
		w.Proto = s.Proto
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
		e.withWorker(s.ID, func(l *Worker) {
			if changes && e.AfterPause(p.OrDrop(func() { e.Spawn(begin) })) {
				return
			}
			l.runInBackground(p, in, func() {
				if memory != nil && l.flight == nil { // whose replies are not long
					l.w.Pieces, l.w.Defers = memory, transaction == 0 // which keeps all locked
				}
				l.ctx.Cmd, l.ctx.Args = cmd, args
				// EXEC asks for each of its commands. The server may have become a replica meanwhile.
				if transaction > 0 || !l.forbidden(&l.ctx) && !refuseHalted(&l.ctx) {
					do(&l.ctx)
				}
				if l.flight != nil {
					l.settle(in)
				}
				l.w.CopyDeferred()
			})
			resp.Recycle(args)
		})
	}
	e.Spawn(begin)
}

// slotsOf returns the turns that a command of Background waits for.
func (e *Engine) slotsOf(cmd *command.Command) chan struct{} {
	switch {
	case cmd.Files:
		return e.fileSlots
	case cmd.Urgent:
		return e.urgent
	}
	return e.slots
}

// runInBackground runs do as the session in, and answers p, unless p has been refused meanwhile.
func (l *Worker) runInBackground(p *command.Wait, in *Session, do func()) {
	if !p.Claim() {
		return
	}
	l.w = resp.Writer{Proto: in.Proto, Ledger: l.Server.Options.Ledger, OnError: l.OnError}
	l.ctx = command.Call{Worker: &l.Worker, Client: &in.Client, W: &l.w}
	if l.Journal != nil {
		l.Journal.TakePosition() // of what ran here before
	}
	defer func() {
		if r := recover(); r != nil {
			engineOf(l.Server).Recovered(r)
			l.Store.Unlock()
			l.w.Cut(0)
			l.w.Error(resp.ErrInternal)
			p.Broken = true
		}
		if l.flight != nil {
			l.flight.clear() // of what a panic has left
		}
		l.endBatch()
		reply := l.w.Take()
		l.ctx.Client, l.ctx.Args = nil, nil
		p.NoEffect = l.Journal != nil && l.Journal.TakePosition() == 0
		p.Answer(func(w *resp.Writer) { w.Reply(reply) })
	}()
	do()
}

// replySize is about how many bytes the reply of a command of the client copies. This
// is asked before the reply is made in the background, so that its memory can be waited
// for. The values may change meanwhile: what the reply takes beyond the estimate is
// counted as it is made.
func replySize(cl *command.Client, st env.Store, cmd *command.Command, args [][]byte) int {
	if cmd.ReplySize != nil {
		return cmd.ReplySize(cl, st, cmd, args)
	}
	return command.CopiedBy(st, cl.Selected(), cmd, args)
}

// Rerun implements [command.Host]: it runs a command again that has been counted, and has left its loop before it did
// anything.
func (e *Engine) Rerun(c *command.Call, cmd *command.Command) {
	workerOf(c.Worker).beginErrors()
	e.Timed(c, cmd.Run)
	workerOf(c.Worker).endErrors(cmd)
}

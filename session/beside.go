package session

import (
	"runtime"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

// Background implements [command.Host]: it runs do, which is the running command or what is left to do of it, on a
// goroutine beside the loops. The session is parked meanwhile and acts through a
// stand-in. Unlike in a command that is [alone] everybody else goes on: do locks what it
// needs as it would have done on the loop.
func (e *Engine) Background(c *command.Call, do func(c *command.Call)) {
	s := sessionOf(c.Client)
	p, in := c.NewWait(), s.proxy()
	in.Beside = true
	cmd, args := c.Cmd, laneOf(c.Worker).takeArgs(c.Args)
	changes := c.MayChange(cmd, args)
	size := func(st command.Store) int { return replySize(&in.Client, st, cmd, args) }
	transaction := e.Transfer(&s.Client, &in.Client)
	p.Kept = command.ArgsCost(args) + transaction
	p.Resume = func(w *resp.Writer) {
		s.merge(in)
		w.Proto = s.Proto
	}
	c.Park(p)
	var begin func()
	begin = func() {
		memory := e.takeTurn(e.besideSlots, p, size)
		defer e.endTurn(e.besideSlots, memory)
		e.withLane(s.Id, func(l *Lane) {
			if changes && e.AfterPause(p.OrForgo(func() { e.Spawn(begin) })) {
				return
			}
			l.runBeside(p, in, func() {
				if memory != nil {
					l.w.Pieces, l.w.Defers = memory, transaction == 0 // which keeps all locked
				}
				l.ctx.Cmd, l.ctx.Args = cmd, args
				do(&l.ctx)
				l.w.CopyDeferred()
			})
			resp.Recycle(args)
		})
	}
	e.Spawn(begin)
}

// maxBeside is how many commands run beside the loops at once: half of what processors
// there are, since the loops need theirs, and all that hold many keys wait for each
// other anyway.
func maxBeside() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// runBeside runs do as the session in, and answers p.
func (l *Lane) runBeside(p *command.Wait, in *Session, do func()) {
	l.w = resp.Writer{Proto: in.Proto, Ledger: l.Server.Opts.Ledger, OnError: l.OnError}
	l.ctx = command.Call{Worker: &l.Worker, Client: &in.Client, W: &l.w}
	if l.Journal != nil {
		l.Journal.TakePosition() // of what ran here before
	}
	defer func() {
		if r := recover(); r != nil {
			engineOf(l.Server).Recovered(r)
			l.Store.Release()
			l.w.Cut(0)
			l.w.Error(resp.ErrInternal)
			p.Broken = true
		}
		l.flushRun()
		l.Server.BatchEnd(&l.Worker)
		reply := l.w.Take()
		l.ctx.Client, l.ctx.Args = nil, nil
		p.Looked = l.Journal != nil && l.Journal.TakePosition() == 0
		p.Finish(func(w *resp.Writer) { w.Reply(reply) })
	}()
	do()
}

// Rerun implements [command.Host]: it runs a command again that has been counted, and has left its loop before it did
// anything.
func (e *Engine) Rerun(c *command.Call, cmd *command.Command) {
	laneOf(c.Worker).beginErrors()
	e.Timed(c, cmd, cmd.Run)
	laneOf(c.Worker).endErrors(cmd)
}

// Timed implements [command.Host].
func (e *Engine) Timed(c *command.Call, cmd *command.Command, f func(c *command.Call)) {
	began := c.Server.Opts.Stopwatch()
	f(c)
	laneOf(c.Worker).counts[cmd.Id].Nanos.Add(int64(c.Server.Opts.Stopwatch() - began))
}

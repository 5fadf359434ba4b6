package commands

import (
	"runtime"

	"github.com/cellserver/cellserver/resp"
)

// Background implements [Host]: it runs do, which is the running command or what is left to do of it, on a
// goroutine beside the loops. The session is parked meanwhile and acts through a
// stand-in. Unlike in a command that is [alone] everybody else goes on: do locks what it
// needs as it would have done on the loop.
func (e *Engine) Background(c *Ctx, do func(c *Ctx)) {
	s := sessionOf(c.Client)
	p, in := c.parking(), s.standIn()
	in.beside = true
	cmd, args := c.Cmd, laneOf(c.Worker).takeArgs(c.Args)
	changes := c.mayChange(cmd, args)
	size := func(st Store) int { return in.replySize(st, cmd, args) }
	p.kept = argsCost(args)
	if s.tx != nil {
		p.kept += s.tx.bytes + s.watching
		s.giveTransaction(in)
	}
	p.resume = func(w *resp.Writer) {
		s.adopt(in)
		w.Proto = s.proto
	}
	c.Park(p)
	var begin func()
	begin = func() {
		memory := e.takeTurn(e.besideSlots, p, size)
		defer e.endTurn(e.besideSlots, memory)
		e.withLane(s.id, func(l *Lane) {
			if changes && e.behindPause(p.orForgo(func() { e.Spawn(begin) })) {
				return
			}
			l.runBeside(p, in, func() {
				if memory != nil {
					l.w.Pieces, l.w.Defers = memory, in.tx == nil // which keeps all locked
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

// argsCost is the memory that copied arguments take.
func argsCost(args [][]byte) (n int) {
	for _, a := range args {
		n += len(a) + argCost
	}
	return n
}

// runBeside runs do as the session in, and answers p.
func (l *Lane) runBeside(p *Parked, in *Session, do func()) {
	l.w = resp.Writer{Proto: in.proto, Ledger: l.server.opts.Ledger, OnError: l.onError}
	l.ctx = Ctx{Worker: &l.Worker, Client: &in.Client, W: &l.w}
	if l.journal != nil {
		l.journal.TakePosition() // of what ran here before
	}
	defer func() {
		if r := recover(); r != nil {
			engineOf(l.server).Recovered(r)
			l.Store.Release()
			l.w.Cut(0)
			l.w.Error(resp.ErrInternal)
			p.broken = true
		}
		l.flushRun()
		l.flushTop()
		reply := l.w.Take()
		l.ctx.Client, l.ctx.Args = nil, nil
		p.looked = l.journal != nil && l.journal.TakePosition() == 0
		p.Finish(func(w *resp.Writer) { w.Reply(reply) })
	}()
	do()
}

// Rerun implements [Host]: it runs a command again that has been counted, and has left its loop before it did
// anything.
func (e *Engine) Rerun(c *Ctx, cmd *Command) {
	laneOf(c.Worker).beginErrors()
	c.timed(cmd, cmd.Run)
	laneOf(c.Worker).endErrors(cmd)
}

// timed runs f and counts how long it takes as time of cmd.
func (c *Ctx) timed(cmd *Command, f func(c *Ctx)) {
	began := c.server.opts.Stopwatch()
	f(c)
	laneOf(c.Worker).counts[cmd.id].Nanos.Add(int64(c.server.opts.Stopwatch() - began))
}

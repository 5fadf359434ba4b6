package commands

import (
	"iter"
	"runtime"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

const (
	// asideBudget is how many instructions a script may take where it was called,
	// about a millisecond, before it is moved to a goroutine.
	asideBudget = 20_000
	// asideWork is how many of them count as one unit of work.
	asideWork = 4
)

// aside is where a script runs that nobody knows the length of: a coroutine on a lane
// of its own. A loop that calls such a script closes the gate, switches to the
// coroutine, which costs no more than a call does and wakes nobody, and is back
// when the script is over. If the script takes long, it is back before: then the
// coroutine, the lane and the gate go to a goroutine that ends it, the session is
// parked, and the loop goes on. Closing the gate first is what makes that possible:
// whoever was let in could wait for a lock of the script's for ever.
type aside struct {
	lane   *Lane
	resume func() (over, ok bool)
	stop   func()
	pause  func()

	// Of one call; the bytes are copies, in memory that is used again.
	call   scriptCall
	cmd    *command.Command
	text   []byte
	words  [][]byte
	broken bool
}

// Pin implements transport.Pinned.
func (l *Lane) Pin() { l.pinned = true }

// unpinned runs f without holding the thread: a coroutine that is made or switched
// to by who holds a thread can never leave that thread.
func (l *Lane) unpinned(f func()) {
	if !l.pinned {
		f()
		return
	}
	runtime.UnlockOSThread()
	defer runtime.LockOSThread()
	f()
}

// takeAside returns a coroutine that waits for a call.
func (e *Engine) takeAside() *aside {
	e.lanesMu.Lock()
	if n := len(e.asides); n > 0 {
		x := e.asides[n-1]
		e.asides = e.asides[:n-1]
		e.lanesMu.Unlock()
		return x
	}
	e.lanesMu.Unlock()
	x := &aside{lane: e.newLane()}
	x.resume, x.stop = iter.Pull(func(yield func(over bool) bool) {
		x.pause = func() { yield(false) }
		for yield(true) {
			x.serve()
		}
	})
	x.resume()
	e.lanesMu.Lock()
	e.everyAside = append(e.everyAside, x)
	e.lanesMu.Unlock()
	return x
}

func (e *workers) returnAside(x *aside) {
	e.lanesMu.Lock()
	e.asides = append(e.asides, x)
	e.lanesMu.Unlock()
}

// endAsides ends all coroutines, none of which has anything to do.
func (e *workers) endAsides() {
	e.lanesMu.Lock()
	defer e.lanesMu.Unlock()
	for _, x := range e.everyAside {
		x.stop()
	}
	e.everyAside, e.asides = nil, nil
}

// runAside runs s, with the first n arguments as keys, at once if it ends soon.
func runAside(c *command.Call, call *scriptCall, n int) {
	l := laneOf(c.Worker)
	if !l.shut() {
		return
	}
	if need := reserve(c, call); need > 0 {
		runLater(c, call, n, need)
		return
	}
	laneOf(c.Worker).unpinned(func() {
		if l.aside == nil {
			l.aside = engineOf(l.Server).takeAside()
		}
		x := l.aside
		x.take(c, call, n)
		over, _ := x.resume()
		if over {
			finishAside(c, x)
			return
		}
		l.aside, l.gated = nil, false
		moveAside(c, x)
	})
}

// shut closes the gate for the rest of the batch. It returns false if somebody else
// has closed it; then the command is to be run again once that is over.
func (l *Lane) shut() bool {
	if l.gated {
		return true
	}
	l.gated = l.Store.CloseGate()
	l.shutOut = !l.gated
	return l.gated
}

// letIn opens the gate at the end of a batch that has closed it.
func (l *Lane) letIn() {
	if l.gated {
		l.gated = false
		l.Store.OpenGate()
	}
}

// tryLater parks the session, whose command could not be run, until the gate is open.
func (s *Session) tryLater(l *Lane) {
	l.shutOut = false
	if l.runLen > 0 {
		l.runLen-- // it is counted again
	}
	s.guard = resp.Guard{}
	s.awaitGate(l)
}

// take copies a call into x.
func (x *aside) take(c *command.Call, call *scriptCall, n int) {
	x.text, x.words = x.text[:0], x.words[:0]
	size := 0
	for _, a := range c.Args {
		size += len(a)
	}
	if cap(x.text) < size {
		x.text = make([]byte, 0, max(size, 256))
	}
	for _, a := range c.Args {
		from := len(x.text)
		x.text = append(x.text, a...)
		x.words = append(x.words, x.text[from:len(x.text):len(x.text)])
	}
	x.call, x.cmd, x.broken = *call, c.Cmd, false
	x.call.keys, x.call.args = x.words[3:3+n], x.words[3+n:]
	l := x.lane
	l.w.Buf, l.w.Proto, l.w.Ledger = l.w.Buf[:0], c.W.Proto, c.W.Ledger
	l.ctx = command.Call{Worker: &l.Worker, Client: c.Client, W: &l.w}
	l.host.aside = x
}

// serve runs the call on the coroutine.
func (x *aside) serve() {
	l := x.lane
	defer func() {
		if r := recover(); r != nil {
			engineOf(l.Server).Recovered(r)
			l.Store.Release()
			l.ctx.Client.Exclusive = false
			l.w.Cut(0)
			l.w.Error(resp.ErrInternal)
			x.broken = true
		}
	}()
	l.Store.Refresh()
	l.beginErrors()
	l.ctx.Cmd, l.ctx.Args = x.cmd, x.words
	runScript(&l.ctx, &x.call)
}

// leave forgets a call.
func (x *aside) leave() {
	l := x.lane
	l.flushRun()
	l.Server.Commands.BatchEnd(&l.Worker)
	l.host.aside, l.host.alone = nil, nil
	x.call.end()
	l.ctx.Client = nil
	if cap(x.text) > keptScriptReply || cap(x.words) > keptTransaction {
		x.text, x.words = nil, nil
	}
	if cap(l.w.Buf) > keptScriptReply {
		l.w.Buf = nil
	}
}

// finishAside answers a script that has ended soon.
func finishAside(c *command.Call, x *aside) {
	l, from := laneOf(c.Worker), x.lane
	if reply := from.w.Take(); !l.w.Reply(reply) {
		from.w.Buf = reply.Buf[:0]
	}
	if from.errors != from.errorsSeen { // the script's own, which it has counted
		l.errors++
	}
	c.Client.Closing = c.Client.Closing || x.broken
	l.Work += from.host.spent / asideWork
	if from.host.waits {
		call := x.call
		x.leave()
		runLater(c, &call, len(call.keys), largeRoom(c.Server))
		return
	}
	if from.Journal != nil {
		if at := from.Journal.TakePosition(); at != 0 {
			l.answered, l.asideEffect = max(l.answered, at), true
		}
	}
	x.leave()
}

// moveAside hands a script that takes long, and the gate, to a goroutine. The script
// stands still meanwhile, between two instructions.
func moveAside(c *command.Call, x *aside) {
	e, s, from := engineOf(c.Server), sessionOf(c.Client), x.lane
	in := s.standIn()
	in.Exclusive, s.Exclusive = true, false
	a := &alone{parked: c.NewWait(), stand: in, run: from.host.run, written: from.host.wrote, begun: true}
	a.parked.Resume = func(w *resp.Writer) {
		s.adopt(in)
		w.Proto = s.Proto
	}
	from.ctx.Client, from.host.alone = &in.Client, a
	c.Park(a.parked)
	e.setAlone(a)
	e.startBusy(a, from.Store)
	e.Spawn(func() { e.endAside(x, a) })
}

// setAlone notes that a runs, which has closed the gate.
func (e *Engine) setAlone(a *alone) {
	so := &e.alone
	so.mu.Lock()
	defer so.mu.Unlock()
	so.current = a
	if so.over {
		so.torn = true
		a.doom()
	}
}

// endAside runs a to its end, answers it and lets everybody in again.
func (e *Engine) endAside(x *aside, a *alone) {
	l := x.lane
	began := e.Opts.Stopwatch()
	x.resume()
	l.counts[x.cmd.Id].Nanos.Add(int64(e.Opts.Stopwatch() - began))
	l.endErrors(x.cmd)
	reply, st, waits := l.w.Take(), l.Store, l.host.waits
	if waits {
		call := x.call
		a = &alone{parked: a.parked, stand: a.stand, changes: l.ctx.MayChange(x.cmd, x.words)}
		a.do = again(&l.ctx, x.cmd, command.CloneArgs(x.words), &call, len(call.keys))
	}
	// With an effect the session waits for all there is.
	a.parked.Looked = l.Journal != nil && l.Journal.TakePosition() == 0
	x.leave()
	a.parked.Broken = x.broken
	if waits {
		e.retry(a)
	} else {
		a.parked.Finish(func(w *resp.Writer) { w.Reply(reply) })
	}
	l.publishHeld()
	e.doneAlone()
	if !e.isTorn() {
		st.OpenGate()
	}
	e.returnAside(x)
}

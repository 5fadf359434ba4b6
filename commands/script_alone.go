package commands

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/budget"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
)

// alone is a command that runs while everything else stands still, because nobody
// knows how long it takes: a script with a loop, or a transaction with such a
// script. It runs on a goroutine beside the loops; its session is parked, and
// acts in it through a stand-in.
type alone struct {
	parked *command.Wait
	stand  *Session
	do     func(c *command.Call)
	// changes says that a pause of changes is for it, too.
	changes bool
	// memory was asked for before it ran; nil if nothing was.
	memory  *budget.Grant
	retries int // because memory was short

	busyTimer func() bool // guarded by solitude.mu: stops it

	mu      sync.Mutex
	run     *lua.Run // guarded by mu: the script that runs, nil between scripts
	written bool     // guarded by mu: by that script
	begun   bool     // guarded by mu: a script has
	killed  bool     // guarded by mu: by SCRIPT KILL
	doomed  bool     // guarded by mu: ended with the server
}

// solitude runs commands that have to be alone, one after another.
type solitude struct {
	busy atomic.Bool // the one that runs has been running for long

	mu      sync.Mutex
	idle    *sync.Cond // on mu: current has become nil
	queue   []*alone   // guarded by mu
	running bool       // guarded by mu: a goroutine serves the queue
	current *alone     // guarded by mu
	over    bool       // guarded by mu: the server ends, nothing may run for long
	torn    bool       // guarded by mu: a script was ended half way for that
}

// parkAlone parks the session for a command that is to run alone.
func parkAlone(c *command.Call, do func(c *command.Call)) *alone {
	p, s := c.NewWait(), sessionOf(c.Client)
	a := &alone{parked: p, stand: s.standIn(), do: do, changes: c.MayChange(c.Cmd, c.Args)}
	p.Resume = func(w *resp.Writer) {
		s.adopt(a.stand)
		w.Proto = s.Proto
	}
	c.Park(p)
	return a
}

func (e *Engine) enqueueAlone(a *alone) {
	so := &e.alone
	so.mu.Lock()
	defer so.mu.Unlock()
	so.queue = append(so.queue, a)
	if !so.running {
		so.running = true
		e.Spawn(e.serveAlone)
	}
}

// aloneBatch is how many commands run before others are let in again.
const aloneBatch = 16

// serveAlone runs what is in the queue until that is empty. The gate is closed
// for several of them, since to stop and wake everybody costs more than most of
// them take.
func (e *Engine) serveAlone() {
	for more := true; more; {
		e.secluded(func(l *Lane) {
			for range aloneBatch {
				a := e.nextAlone()
				if a == nil {
					more = false
					return
				}
				l.runOne(a)
				if e.doneAlone() {
					return
				}
			}
		})
	}
}

// nextAlone takes the next command out of the queue, or ends the service. One that a
// pause is for comes into the queue again when that is over.
func (e *Engine) nextAlone() *alone {
	so := &e.alone
	so.mu.Lock()
	defer so.mu.Unlock()
	for len(so.queue) > 0 && !so.over {
		a := so.queue[0]
		so.queue[0] = nil
		so.queue = so.queue[1:]
		if a.changes && e.AfterPause(a.parked.OrForgo(func() { e.enqueueAlone(a) })) {
			continue
		}
		so.current = a
		return a
	}
	so.running, so.queue = false, nil
	return nil
}

// doneAlone notes that the command has ended, and reports whether it took so long
// that others have to be let in.
func (e *Engine) doneAlone() (long bool) {
	so := &e.alone
	so.mu.Lock()
	defer so.mu.Unlock()
	if so.current.busyTimer != nil {
		so.current.busyTimer()
	}
	so.current = nil
	so.idle.Broadcast()
	return so.busy.Swap(false)
}

// secluded runs f on a lane of its own while nobody else is in the store.
func (e *Engine) secluded(f func(l *Lane)) {
	l := e.slowLane()
	defer e.returnSlowLane(l)
	for {
		for !l.Store.Enter() {
			open := make(chan struct{}, 1)
			l.Store.WaitOpen(func() { open <- struct{}{} })
			<-open
		}
		if l.Store.CloseGate() {
			break
		}
		l.Store.Leave()
	}
	defer func() {
		l.Store.Leave()
		if !e.isTorn() { // else Close opens it, once nobody is left to look
			l.Store.OpenGate()
		}
	}()
	f(l)
}

// runOne runs a with all keys held, at one instant of its own, and answers it.
func (l *Lane) runOne(a *alone) {
	e, st := engineOf(l.Server), l.Store
	st.Refresh()
	e.startBusy(a, st)
	l.w = resp.Writer{Proto: a.stand.Proto, Ledger: e.Opts.Ledger, OnError: l.onError}
	l.ctx = command.Call{Worker: &l.Worker, Client: &a.stand.Client, W: &l.w}
	l.host.alone, l.host.waits = a, false
	if l.Journal != nil {
		l.Journal.TakePosition() // of what ran here before
	}
	defer func() {
		if r := recover(); r != nil {
			e.Recovered(r)
			st.Release()
			l.w.Cut(0)
			l.w.Error(resp.ErrInternal)
			a.parked.Broken = true
		}
		waits := l.host.waits && !a.parked.Broken
		l.host.alone, l.host.waits = nil, false
		l.flushRun()
		l.Server.Commands.BatchEnd(&l.Worker)
		reply := l.w.Take()
		l.ctx.Client = nil
		if waits {
			e.retry(a)
			return
		}
		a.parked.Looked = l.Journal != nil && l.Journal.TakePosition() == 0
		a.parked.Finish(func(w *resp.Writer) { w.Reply(reply) })
		a.memory.End()
		l.publishHeld()
	}()
	l.beginErrors()
	began := e.Opts.Stopwatch()
	a.do(&l.ctx)
	l.counts[l.ctx.Cmd.Id].Nanos.Add(int64(e.Opts.Stopwatch() - began))
	l.endErrors(l.ctx.Cmd)
}

// isTorn reports whether what ran alone was ended half way.
func (e *Engine) isTorn() bool {
	e.alone.mu.Lock()
	defer e.alone.mu.Unlock()
	return e.alone.torn
}

// startBusy starts the time after which a keeps others waiting for long, or starts it
// again.
func (e *Engine) startBusy(a *alone, st command.Store) {
	d := e.Limits().Busy
	if d == 0 {
		return
	}
	so := &e.alone
	so.mu.Lock()
	defer so.mu.Unlock()
	if so.current == a {
		so.busy.Store(false)
		a.busyTimer = st.AfterFunc(d, func() { e.nowBusy(a, st) })
	}
}

// nowBusy tells everybody who waits at the gate that it will take longer.
func (e *Engine) nowBusy(a *alone, st command.Store) {
	so := &e.alone
	so.mu.Lock()
	defer so.mu.Unlock()
	if so.current == a {
		so.busy.Store(true)
		st.WakeWaiting()
	}
}

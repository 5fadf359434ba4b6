package session

import (
	"iter"
	"runtime"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

// Pin implements transport.Pinned.
func (l *Worker) Pin() { l.pinned = true }

// unpinned runs f without holding the thread: a coroutine that is made or switched
// to by who holds a thread can never leave that thread.
func (l *Worker) unpinned(f func()) {
	if !l.pinned {
		f()
		return
	}
	runtime.UnlockOSThread()
	defer runtime.LockOSThread()
	f()
}

// takeCoroutine returns a coroutine that waits for a call.
func (e *Engine) takeCoroutine() *coroutine {
	e.workersMu.Lock()
	if n := len(e.coroutines); n > 0 {
		x := e.coroutines[n-1]
		e.coroutines = e.coroutines[:n-1]
		e.workersMu.Unlock()
		return x
	}
	e.workersMu.Unlock()
	x := &coroutine{worker: e.newWorker()}
	x.resume, x.stop = iter.Pull(func(yield func(over bool) bool) {
		x.worker.Yield = func() { yield(false) }
		for yield(true) {
			x.serve()
		}
	})
	x.resume()
	e.workersMu.Lock()
	e.everyCoroutine = append(e.everyCoroutine, x)
	e.workersMu.Unlock()
	return x
}

func (e *workers) returnCoroutine(x *coroutine) {
	e.workersMu.Lock()
	e.coroutines = append(e.coroutines, x)
	e.workersMu.Unlock()
}

// endCoroutines ends all coroutines, none of which has anything to do.
func (e *workers) endCoroutines() {
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	for _, x := range e.everyCoroutine {
		x.stop()
	}
	e.everyCoroutine, e.coroutines = nil, nil
}

// RunOnCoroutine implements [command.Host].
func (e *Engine) RunOnCoroutine(c *command.Call, how *command.Coroutine, arg any) (again bool) {
	l := workerOf(c.Worker)
	l.unpinned(func() {
		if l.coroutine == nil {
			l.coroutine = e.takeCoroutine()
		}
		x := l.coroutine
		x.take(c, how, arg)
		if over, _ := x.resume(); over {
			again = x.finish(c)
			return
		}
		l.coroutine, l.stopped = nil, false
		e.moveCoroutine(c, x)
	})
	return again
}

// take copies a call into x.
func (x *coroutine) take(c *command.Call, how *command.Coroutine, arg any) {
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
	x.how, x.arg, x.cmd, x.broken = how, arg, c.Cmd, false
	l := x.worker
	l.w.Buf, l.w.Proto, l.w.Ledger = l.w.Buf[:0], c.W.Proto, c.W.Ledger
	l.ctx = command.Call{Worker: &l.Worker, Client: c.Client, W: &l.w}
	l.Work, l.Again = 0, false
}

// serve runs the call on the coroutine.
func (x *coroutine) serve() {
	l := x.worker
	defer func() {
		if r := recover(); r != nil {
			engineOf(l.Server).Recovered(r)
			l.Store.Unlock()
			l.ctx.Client.Exclusive = false
			l.w.Cut(0)
			l.w.Error(resp.ErrInternal)
			x.broken = true
		}
	}()
	l.Store.Refresh()
	l.beginErrors()
	l.ctx.Cmd, l.ctx.Args = x.cmd, x.words
	x.how.Do(&l.ctx, x.arg)
}

const (
	// keptText and keptWords are how much room for words and replies a coroutine keeps.
	keptText  = 64 << 10
	keptWords = 4 << 10
)

// leave forgets a call.
func (x *coroutine) leave() {
	l := x.worker
	l.endBatch()
	l.Exclusive, l.Again, x.arg = nil, false, nil
	l.ctx.Client = nil
	if cap(x.text) > keptText || cap(x.words) > keptWords {
		x.text, x.words = nil, nil
	}
	if cap(l.w.Buf) > keptText {
		l.w.Buf = nil
	}
}

// finish answers a call that has ended soon, and reports whether it is to be run again.
func (x *coroutine) finish(c *command.Call) (again bool) {
	l, from := workerOf(c.Worker), x.worker
	if reply := from.w.Take(); !l.w.Reply(reply) {
		from.w.Buf = reply.Buf[:0]
	}
	if from.errors != from.errorsSeen { // the call's own, which it has counted
		l.errors++
	}
	c.Client.Closing = c.Client.Closing || x.broken
	l.Work += from.Work
	again = from.Again
	if from.Journal != nil && !again {
		if at := from.Journal.TakePosition(); at != 0 {
			l.answered, l.coroutineEffect = max(l.answered, at), true
		}
	}
	x.leave()
	return again
}

// moveCoroutine hands a call that takes long, and the stopped world, to a goroutine. The
// call stands still meanwhile, between two steps.
func (e *Engine) moveCoroutine(c *command.Call, x *coroutine) {
	s, from := sessionOf(c.Client), x.worker
	in := s.proxy()
	in.Exclusive, s.Exclusive = true, false
	run := e.parkExclusive(c, in)
	run.Adopt(x.how.Script(&from.Worker))
	from.ctx.Client, from.Exclusive = &in.Client, run
	e.setExclusive(run)
	e.startBusy(run, from.Store)
	e.Spawn(func() { e.endCoroutine(x, run) })
}

// setExclusive notes that run, which has stopped the world, runs.
func (e *Engine) setExclusive(run *command.Exclusive) {
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	q.current, q.began = run, e.Options.Stopwatch()
	if q.closed {
		q.aborted = true
		run.Abort()
	}
}

// endCoroutine runs a call to its end, answers it and lets everybody in again.
func (e *Engine) endCoroutine(x *coroutine, run *command.Exclusive) {
	l := x.worker
	began := e.Options.Stopwatch()
	x.resume()
	run.Wait.Took.Add(int64(e.Options.Stopwatch() - began))
	l.endErrors(x.cmd)
	reply, st, again := l.w.Take(), l.Store, l.Again
	if again {
		run = &command.Exclusive{Wait: run.Wait, Proxy: run.Proxy, Changes: waitsForPause(&l.ctx, x.cmd, x.words)}
		run.Do = x.how.Again(&l.ctx)
	}
	// With an effect the session waits for all there is.
	run.Wait.NoEffect = l.Journal != nil && l.Journal.TakePosition() == 0
	x.leave()
	run.Wait.Broken = x.broken
	if again {
		e.retry(run)
	} else {
		run.Wait.Finish(func(w *resp.Writer) { w.Reply(reply) })
	}
	e.AfterCommand(&l.Worker)
	e.doneExclusive()
	if !e.isAborted() {
		st.StartWorld()
	}
	e.returnCoroutine(x)
}

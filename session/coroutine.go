package session

import (
	"iter"
	"runtime"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// Pin implements [transport.Pinned]: it records that the goroutine that feeds with w is locked to
// its thread.
func (w *Worker) Pin() { w.pinned = true }

// unpinned runs f. If the goroutine is locked to its thread, unpinned unlocks it before and locks
// it again afterwards. A coroutine that was created or resumed by a goroutine that is locked to
// its thread could never run on another thread.
func (w *Worker) unpinned(f func()) {
	if !w.pinned {
		f()
		return
	}
	runtime.UnlockOSThread()
	defer runtime.LockOSThread()
	f()
}

// takeCoroutine returns an idle coroutine, or a new one with its own worker. It may not be called
// by a goroutine that is locked to its thread: see unpinned.
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

// endCoroutines ends all coroutines. None of the coroutines may be running a call.
func (e *workers) endCoroutines() {
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	for _, x := range e.everyCoroutine {
		x.stop()
	}
	e.everyCoroutine, e.coroutines = nil, nil
}

// RunOnCoroutine implements [command.Exclusives]: it runs the call c on a coroutine, after the caller
// has stopped the world. If the call yields, RunOnCoroutine parks the client and moves the
// coroutine and the stopped world to a new goroutine. again says that the call is over and has to
// run again.
func (e *Engine) RunOnCoroutine(c *command.Call, how *command.Coroutine, arg any) (again bool) {
	w := workerOf(c.Worker)
	w.unpinned(func() {
		if w.coroutine == nil {
			w.coroutine = e.takeCoroutine()
		}
		x := w.coroutine
		x.take(c, how, arg)
		if over, _ := x.resume(); over {
			again = x.finish(c)
			return
		}
		w.coroutine, w.stopped = nil, false
		e.moveCoroutine(c, x)
	})
	return again
}

// take copies the call c, including its arguments, into x. how and arg are the arguments of
// RunOnCoroutine.
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
	w := x.worker
	w.out.Buf, w.out.Proto, w.out.Ledger = w.out.Buf[:0], c.W.Proto, c.W.Ledger
	w.ctx = command.Call{Worker: &w.Worker, Client: c.Client, W: &w.out}
	w.Work, w.Again = 0, false
}

// serve runs the call of x on the coroutine. A panic becomes an error reply, and x.broken is set.
func (x *coroutine) serve() {
	w := x.worker
	defer func() {
		if r := recover(); r != nil {
			engineOf(w.Server).Recovered(r)
			w.ReleaseLocks()
			w.ctx.Client.Exclusive = false
			w.out.Cut(0)
			w.out.Error(resp.ErrInternal)
			x.broken = true
		}
	}()
	w.Store.Refresh()
	w.beginErrors()
	w.ctx.Cmd, w.ctx.Args = x.cmd, x.words
	x.how.Do(&w.ctx, x.arg)
}

const (
	// keptText and keptWords are the maximum numbers of bytes and of arguments for which a
	// coroutine keeps memory while it is idle.
	keptText  = 64 << 10
	keptWords = 4 << 10
)

// leave clears the call of x, and frees buffers that have grown beyond keptText or keptWords.
func (x *coroutine) leave() {
	w := x.worker
	w.endBatch()
	w.Exclusive, w.Again, x.arg = nil, false, nil
	w.ctx.Client = nil
	if cap(x.text) > keptText || cap(x.words) > keptWords {
		x.text, x.words = nil, nil
	}
	if cap(w.out.Buf) > keptText {
		w.out.Buf = nil
	}
}

// finish writes the reply of x, whose call has ended without yielding, to the output of c's worker,
// adds the work, the errors and the journal position of x's worker to those of c's worker, clears
// x, and reports whether the call has to run again.
func (x *coroutine) finish(c *command.Call) (again bool) {
	w, from := workerOf(c.Worker), x.worker
	if reply := from.out.Take(); !w.out.Reply(reply) {
		from.out.Buf = reply.Buf[:0]
	}
	if from.errors != from.errorsSeen { // the call itself had an error, which the coroutine's worker has counted already
		w.errors++
	}
	c.Client.Closing = c.Client.Closing || x.broken
	w.Work += from.Work
	again = from.Again
	if from.Journal != nil && !again {
		if at := from.Journal.TakePosition(); at != 0 {
			w.answered, w.coroutineEffect = max(w.answered, at), true
		}
	}
	x.leave()
	return again
}

// moveCoroutine moves the call c, which takes long, to a new goroutine, together with the
// coroutine x and the stopped world. It parks the session of c. The call is suspended between two
// steps meanwhile.
func (e *Engine) moveCoroutine(c *command.Call, x *coroutine) {
	s, from := sessionOf(c.Client), x.worker
	in := s.proxy()
	in.Exclusive, s.Exclusive = true, false
	run := e.parkExclusive(c, in)
	run.BeginRunning(x.how.Script(&from.Worker))
	from.ctx.Client, from.Exclusive = &in.Client, run
	e.setExclusive(run)
	e.startBusy(run, from)
	e.Spawn(func() { e.endCoroutine(x, run) })
}

// setExclusive makes run, which has stopped the world, the current exclusive command. If the
// server already stops, setExclusive aborts run.
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

// endCoroutine runs the call of x to its end, replies to run, starts the world and returns x to
// the idle coroutines. If the call has to run again, it is queued again instead of being
// answered. After an abort the world stays stopped, and Close starts it.
func (e *Engine) endCoroutine(x *coroutine, run *command.Exclusive) {
	w := x.worker
	began := e.Options.Stopwatch()
	x.resume()
	run.Wait.Took.Add(int64(e.Options.Stopwatch() - began))
	w.endErrors(x.cmd)
	reply, again := w.out.Take(), w.Again
	if again {
		run = &command.Exclusive{Wait: run.Wait, Proxy: run.Proxy, Changes: waitsForPause(&w.ctx, x.cmd, x.words)}
		run.Do = x.how.Again(&w.ctx)
	}
	// A reply to a call with effects waits until everything in the journal up to now is persisted.
	run.Wait.NoEffect = w.Journal != nil && w.Journal.TakePosition() == 0
	x.leave()
	run.Wait.Broken = x.broken
	if again {
		e.retry(run)
	} else {
		run.Wait.Finish(func(out *resp.Writer) { out.Reply(reply) })
	}
	e.AfterCommand(&w.Worker)
	e.doneExclusive()
	if !e.isAborted() {
		w.start()
	}
	e.returnCoroutine(x)
}

package session

import (
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

// ParkExclusive implements [command.Host].
func (e *Engine) ParkExclusive(c *command.Call, do func(c *command.Call)) *command.Exclusive {
	x := e.parkExclusive(c, sessionOf(c.Client).proxy())
	x.Do, x.Changes = do, waitsForPause(c, c.Cmd, c.Args)
	x.Wait.Kept += e.Transfer(c.Client, x.Proxy)
	return x
}

// parkExclusive parks the session of c while the proxy in acts for it.
func (e *Engine) parkExclusive(c *command.Call, in *Session) *command.Exclusive {
	x, s := &command.Exclusive{Wait: c.NewWait(0), Proxy: &in.Client}, sessionOf(c.Client)
	x.Wait.Resume = func(w *resp.Writer) {
		s.merge(in)
		w.Proto = s.Proto
	}
	c.Park(x.Wait)
	return x
}

// Enqueue implements [command.Host].
func (e *Engine) Enqueue(x *command.Exclusive) {
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, x)
	if !q.running {
		q.running = true
		e.Spawn(e.serveExclusive)
	}
}

// EnqueueWith implements [command.Host].
func (e *Engine) EnqueueWith(x *command.Exclusive, need int64) {
	e.Spawn(func() {
		x.Memory = e.Large.Ask(need)
		if x.Wait.Gone.Load() {
			x.Memory.End()
			return
		}
		e.Enqueue(x)
	})
}

// retry runs x, which has lacked memory, again after the memory of all other replies was freed.
func (e *Engine) retry(x *command.Exclusive) {
	x.Memory.End()
	x.Memory = nil
	x.Retries++
	e.EnqueueWith(x, e.LargeRoom())
}

// exclusiveBatch is how many exclusive commands run before the world is started again.
const exclusiveBatch = 16

// serveExclusive runs the commands in the queue until it is empty. It stops the world once for
// several of them, because stopping it and waking all sessions costs more than most of these
// commands.
func (e *Engine) serveExclusive() {
	for more := true; more; {
		e.withStoppedWorld(func(w *Worker) {
			for range exclusiveBatch {
				x := e.nextExclusive()
				if x == nil {
					more = false
					return
				}
				w.runExclusive(x)
				if e.doneExclusive() {
					return
				}
			}
		})
	}
}

// nextExclusive removes the next command from the queue, or ends the service. A command that a
// pause delays returns to the queue after the pause.
func (e *Engine) nextExclusive() *command.Exclusive {
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) > 0 && !q.closed {
		x := q.queue[0]
		q.queue[0] = nil
		q.queue = q.queue[1:]
		if x.Changes && e.AfterPause(x.Wait.ResumeOrDrop(func() { e.Enqueue(x) })) {
			continue
		}
		q.current, q.began = x, e.Options.Stopwatch()
		return x
	}
	q.running, q.queue = false, nil
	return nil
}

// doneExclusive records that the command has ended, and reports whether it took so long that the
// world has to be started.
func (e *Engine) doneExclusive() (long bool) {
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current.StopTimer != nil {
		q.current.StopTimer()
	}
	q.current = nil
	q.idle.Broadcast()
	return q.busy.Swap(false)
}

// runExclusive runs x while the world is stopped, at its own instant, and replies.
func (w *Worker) runExclusive(x *command.Exclusive) {
	e, st := engineOf(w.Server), w.Store
	st.Refresh()
	e.startBusy(x, st)
	w.out = resp.Writer{Proto: x.Proxy.Proto, Ledger: e.Options.Ledger, OnError: w.OnError}
	w.ctx = command.Call{Worker: &w.Worker, Client: x.Proxy, W: &w.out}
	w.Exclusive, w.Again = x, false
	if w.Journal != nil {
		w.Journal.TakePosition() // discard the position of earlier calls
	}
	defer func() {
		if r := recover(); r != nil {
			e.Recovered(r)
			st.Unlock()
			w.out.Cut(0)
			w.out.Error(resp.ErrInternal)
			x.Wait.Broken = true
		}
		again := w.Again && !x.Wait.Broken
		w.Exclusive, w.Again = nil, false
		w.endBatch()
		reply := w.out.Take()
		w.ctx.Client = nil
		if again {
			e.retry(x)
			return
		}
		x.Wait.NoEffect = w.Journal != nil && w.Journal.TakePosition() == 0
		x.Wait.Finish(func(out *resp.Writer) { out.Reply(reply) })
		x.Memory.End()
		e.AfterCommand(&w.Worker)
	}()
	w.beginErrors()
	began := e.Options.Stopwatch()
	x.Do(&w.ctx)
	x.Wait.Took.Add(int64(e.Options.Stopwatch() - began))
	w.endErrors(w.ctx.Cmd)
}

// startBusy starts or restarts the timer after which x counts as busy.
func (e *Engine) startBusy(x *command.Exclusive, st env.Store) {
	d := e.Limits().Busy
	if d == 0 {
		return
	}
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current == x {
		q.busy.Store(false)
		x.StopTimer = st.AfterFunc(d, func() { e.nowBusy(x, st) })
	}
}

// nowBusy wakes all sessions that wait for the world to start, because that will take longer.
func (e *Engine) nowBusy(x *command.Exclusive, st env.Store) {
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current == x {
		q.busy.Store(true)
		st.WakeWaiting()
	}
}

// KillExclusive implements [command.Host]. It can only find a script that is busy: before that the
// caller waits for its end, like every other command.
func (e *Engine) KillExclusive(c *command.Call) resp.Error {
	q := &e.exclusive
	q.mu.Lock()
	x := q.current
	q.mu.Unlock()
	if x == nil {
		return command.ErrNotBusy
	}
	if err := x.Kill(); err != "" {
		return err
	}
	// The script ends at its next instruction, so other commands can wait again. Another script of
	// the same transaction may become busy later.
	e.startBusy(x, c.Store)
	return ""
}

// EndExclusive implements [command.Host]: it ends the exclusive command, even if it has written,
// because the server stops at once, and disconnects all clients except asking: they must not see
// its partial effects. Any goroutine may call it.
func (e *Engine) EndExclusive(asking *command.Client) {
	if !e.abortExclusive() {
		return
	}
	for _, s := range e.clients.list() {
		if &s.Client != asking {
			s.Kill()
		}
	}
}

// abortExclusive ends the exclusive command and lets no other begin. It reports whether there was
// one.
func (e *Engine) abortExclusive() bool {
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if q.current == nil {
		return false
	}
	q.aborted = true
	q.current.Abort()
	return true
}

// EndScripts ends the exclusive command after all clients have been disconnected, and reports
// whether a script was aborted, now or before. Memory then has partial effects. They must not be
// saved, and none of them has been logged.
func (e *Engine) EndScripts() (torn bool) {
	e.abortExclusive()
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.current != nil {
		q.idle.Wait()
	}
	return q.aborted
}

// Running describes the running exclusive command.
type Running struct {
	Client *command.Client
	Script string        // SHA-1 of the script; "" for a transaction between two scripts
	For    time.Duration // how long it has been running
	Busy   bool          // other clients get BUSY errors
}

// Running returns the running exclusive command. Any goroutine may call it.
func (e *Engine) Running() (r Running, ok bool) {
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	x := q.current
	if x == nil {
		return r, false
	}
	return Running{Client: x.Wait.Client, Script: x.ScriptName(), For: e.Options.Stopwatch() - q.began, Busy: q.busy.Load()}, true
}

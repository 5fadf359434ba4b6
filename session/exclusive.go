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

// parkExclusive parks the session for what in is to do for it.
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

// retry has x, which has lacked memory, run once all is free that others' replies take.
func (e *Engine) retry(x *command.Exclusive) {
	x.Memory.End()
	x.Memory = nil
	x.Retries++
	e.EnqueueWith(x, e.LargeRoom())
}

// exclusiveBatch is how many commands run before others are let in again.
const exclusiveBatch = 16

// serveExclusive runs what is in the queue until that is empty. The world is stopped
// for several of them, since to stop and wake everybody costs more than most of
// them take.
func (e *Engine) serveExclusive() {
	for more := true; more; {
		e.withStoppedWorld(func(l *Worker) {
			for range exclusiveBatch {
				x := e.nextExclusive()
				if x == nil {
					more = false
					return
				}
				l.runExclusive(x)
				if e.doneExclusive() {
					return
				}
			}
		})
	}
}

// nextExclusive takes the next command out of the queue, or ends the service. One that a
// pause is for comes into the queue again when that is over.
func (e *Engine) nextExclusive() *command.Exclusive {
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) > 0 && !q.closed {
		x := q.queue[0]
		q.queue[0] = nil
		q.queue = q.queue[1:]
		if x.Changes && e.AfterPause(x.Wait.OrDrop(func() { e.Enqueue(x) })) {
			continue
		}
		q.current, q.began = x, e.Options.Stopwatch()
		return x
	}
	q.running, q.queue = false, nil
	return nil
}

// doneExclusive notes that the command has ended, and reports whether it took so long
// that others have to be let in.
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

// runExclusive runs x with all keys locked, at one instant of its own, and answers it.
func (l *Worker) runExclusive(x *command.Exclusive) {
	e, st := engineOf(l.Server), l.Store
	st.Refresh()
	e.startBusy(x, st)
	l.w = resp.Writer{Proto: x.Proxy.Proto, Ledger: e.Options.Ledger, OnError: l.OnError}
	l.ctx = command.Call{Worker: &l.Worker, Client: x.Proxy, W: &l.w}
	l.Exclusive, l.Again = x, false
	if l.Journal != nil {
		l.Journal.TakePosition() // of what ran here before
	}
	defer func() {
		if r := recover(); r != nil {
			e.Recovered(r)
			st.Unlock()
			l.w.Cut(0)
			l.w.Error(resp.ErrInternal)
			x.Wait.Broken = true
		}
		again := l.Again && !x.Wait.Broken
		l.Exclusive, l.Again = nil, false
		l.endBatch()
		reply := l.w.Take()
		l.ctx.Client = nil
		if again {
			e.retry(x)
			return
		}
		x.Wait.NoEffect = l.Journal != nil && l.Journal.TakePosition() == 0
		x.Wait.Finish(func(w *resp.Writer) { w.Reply(reply) })
		x.Memory.End()
		e.AfterCommand(&l.Worker)
	}()
	l.beginErrors()
	began := e.Options.Stopwatch()
	x.Do(&l.ctx)
	x.Wait.Took.Add(int64(e.Options.Stopwatch() - began))
	l.endErrors(l.ctx.Cmd)
}

// startBusy starts the time after which x keeps others waiting for long, or starts it
// again.
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

// nowBusy tells everybody who waits at the world lock that it will take longer.
func (e *Engine) nowBusy(x *command.Exclusive, st env.Store) {
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current == x {
		q.busy.Store(true)
		st.WakeWaiting()
	}
}

// KillExclusive implements [command.Host]. It only ever meets a script that has been
// running for long: before that the caller waits until it is over, as everything does.
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
	// It ends at its next instruction, so that from now on others can wait. Another
	// script of the same transaction may keep them waiting again.
	e.startBusy(x, c.Store)
	return ""
}

// EndExclusive implements [command.Host]: it ends what runs exclusively, whatever it has done, since the server is to stop
// at once, and cuts off all clients but the one who asked: nobody may see the half
// of what it did. Any goroutine may call it.
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

// abortExclusive ends what runs exclusively, for good. It reports whether there was something.
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

// EndScripts ends what runs exclusively, once no client is left to wait for it, and
// reports whether a script was ended half way, now or before. Memory then holds
// what no client may ever see, and must not be saved; nothing of it has been logged.
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

// Running is what runs exclusively.
type Running struct {
	Client *command.Client
	Script string        // its SHA-1; "" for a transaction between two scripts
	For    time.Duration // how long it has been running
	Busy   bool          // so long that others are told
}

// Running returns what runs exclusively. Any goroutine may call it.
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

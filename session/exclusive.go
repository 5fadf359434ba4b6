package session

import (
	"time"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

// ParkExclusive implements [command.Exclusives]: it parks the client of c for an exclusive command. do
// is the rest of the command, and runs after [Engine.Enqueue] was called with the result.
func (e *Engine) ParkExclusive(c *command.Call, do func(c *command.Call)) *command.Exclusive {
	x := e.parkExclusive(c, sessionOf(c.Client).proxy())
	x.Do, x.Changes = do, waitsForPause(c, c.Cmd, c.Args)
	x.Wait.Kept += e.Transfer(c.Client, x.Proxy)
	return x
}

// parkExclusive parks the session of c and returns its exclusive command. The proxy session in
// acts for the client while the command runs, and is merged back into the session when the reply
// is written.
func (e *Engine) parkExclusive(c *command.Call, in *Session) *command.Exclusive {
	x, s := &command.Exclusive{Wait: c.NewWait(0), Proxy: &in.Client}, sessionOf(c.Client)
	x.Wait.Resume = func(w *resp.Writer) {
		s.merge(in)
		w.Proto = s.Proto
	}
	c.Park(x.Wait)
	return x
}

// Enqueue implements [command.Exclusives]: it appends x to the queue of exclusive commands, and starts
// a goroutine that serves the queue if none is running.
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

// EnqueueWith implements [command.Exclusives]: on a new goroutine it waits until need bytes are
// granted for the reply of x, and then enqueues x. If the client has disconnected by then, x is
// dropped.
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

// retry queues x again, which has run and lacked memory for its reply. x then waits until all
// memory for long replies is granted to it, that is, until all other long replies are freed.
func (e *Engine) retry(x *command.Exclusive) {
	x.Memory.End()
	x.Memory = nil
	x.Retries++
	e.EnqueueWith(x, e.LargeRoom())
}

// exclusiveBatch is the maximum number of exclusive commands that run before the world is started
// again.
const exclusiveBatch = 16

// serveExclusive runs the commands in the queue until the queue is empty. It stops the world once
// for several commands, because stopping it and waking all sessions costs more than most
// exclusive commands.
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

// nextExclusive removes the next command from the queue, makes it the current one and returns it.
// If the queue is empty or closed, nextExclusive ends the service and returns nil. A command that
// a pause delays is left out and returns to the queue after the pause.
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

// doneExclusive records that the current exclusive command has ended. long says that the command
// took so long that the world has to be started before the next one.
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

// runExclusive runs x while the world is stopped, at a fresh instant, and replies. If the command
// lacked memory for its reply, runExclusive queues it again instead. A panic becomes an error
// reply and closes the client.
func (w *Worker) runExclusive(x *command.Exclusive) {
	e := engineOf(w.Server)
	w.Store.Refresh()
	e.startBusy(x, w)
	w.out = resp.Writer{Proto: x.Proxy.Proto, Ledger: e.Options.Ledger, OnError: w.OnError}
	w.ctx = command.Call{Worker: &w.Worker, Client: x.Proxy, W: &w.out}
	w.Exclusive, w.Again = x, false
	if w.Journal != nil {
		w.Journal.TakePosition() // TakePosition discards the position of earlier calls
	}
	defer func() {
		if r := recover(); r != nil {
			e.Recovered(r)
			w.ReleaseLocks()
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

// startBusy starts or restarts the timer after which x counts as busy, if x is the current
// exclusive command. Until then x does not count as busy. If the limit Busy is 0, startBusy does
// nothing.
func (e *Engine) startBusy(x *command.Exclusive, w *Worker) {
	d := e.Limits().Busy
	if d == 0 {
		return
	}
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current == x {
		q.busy.Store(false)
		x.StopTimer = e.Machine(w.Store).AfterFunc(d, func() { e.nowBusy(x, w.world) })
	}
}

// nowBusy marks the current exclusive command as busy if it is still x, and wakes all sessions
// that wait for the world to start, so that they reply with BUSY errors.
func (e *Engine) nowBusy(x *command.Exclusive, world env.World) {
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current == x {
		q.busy.Store(true)
		if world != nil {
			world.WakeWaiting()
		}
	}
}

// KillExclusive implements [command.Exclusives]: it ends the running script for SCRIPT KILL, and
// returns the error to reply with, "" if the script was killed. It can only find a script that is
// busy: before that, the caller of SCRIPT KILL waits for the end of the script, as every other
// command does.
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
	e.startBusy(x, workerOf(c.Worker))
	return ""
}

// EndExclusive implements [command.Exclusives]: it aborts the running exclusive command even if the
// command has written, because the server stops at once, and disconnects all clients except
// asking. They must not see the partial effects of the command. Without a running exclusive command,
// EndExclusive only prevents others from beginning. Any goroutine may call it.
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

// abortExclusive aborts the running exclusive command and prevents others from beginning. It
// reports whether an exclusive command was running.
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

// EndScripts aborts the running exclusive command, prevents others from beginning, and waits for
// the end of the command. All clients must have been disconnected. torn says that an exclusive
// command was aborted, now or before. The keys in memory may then contain partial effects, which
// must not be saved. None of these effects has been logged.
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

// Running describes the exclusive command that is running.
type Running struct {
	Client *command.Client
	Script string        // SHA-1 of the script; "" for a transaction between two scripts
	For    time.Duration // how long it has been running
	Busy   bool          // whether other clients get BUSY errors
}

// Running returns the running exclusive command. ok is false if there is none. Any goroutine may
// call it.
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

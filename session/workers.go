package session

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// NewWorker implements [transport.Handler]: it returns the state for a goroutine that feeds
// sessions.
func (e *Engine) NewWorker() transport.Worker { return e.newWorker() }

func (e *Engine) newWorker() *Worker {
	w := &Worker{
		Worker: command.Worker{Store: e.Options.NewStore(), Server: &e.Server},
		tally:  tally{counts: make([]stats.Counter, len(e.Commands.Entries)), clock: clock{exact: true, paces: e.paces}},
		input:  input{room: make([][]byte, 0, command.RequestWords)},
	}
	w.Owner, w.Call = w, &w.ctx
	w.world, _ = w.Store.(env.World)
	w.keys, _ = w.Store.(env.Keys)
	if e.Options.Remote != nil {
		w.flight, w.Collector = newFlight(), w
	}
	if e.Options.Persistence != nil {
		w.Journal = w.Store.(env.Local)
	}
	w.OnError = w.noteError
	w.out.OnError = w.OnError
	w.ctx = command.Call{Worker: &w.Worker, W: &w.out}
	w.Equip()
	e.workersMu.Lock()
	if len(e.everyWorker) == 0 {
		e.countedSince = e.Options.Now()
	}
	e.everyWorker = append(e.everyWorker, w)
	e.workersMu.Unlock()
	return w
}

// EachWorker implements [command.Measures]: it calls f for every worker, and returns the instant
// since which their statistics count. f may read fields that the lock of the workers guards, and
// must not call methods that take this lock.
func (e *Engine) EachWorker(f func(w *command.Worker)) (since limit.Instant) {
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	for _, w := range e.everyWorker {
		f(&w.Worker)
	}
	return e.countedSince
}

// takeWorker returns an idle worker, or a new one, for a goroutine in the background. The caller
// must return it by returnWorker.
func (e *Engine) takeWorker() *Worker {
	e.workersMu.Lock()
	if n := len(e.idleWorkers); n > 0 {
		w := e.idleWorkers[n-1]
		e.idleWorkers = e.idleWorkers[:n-1]
		e.workersMu.Unlock()
		return w
	}
	e.workersMu.Unlock()
	return e.newWorker()
}

func (e *workers) returnWorker(w *Worker) {
	e.workersMu.Lock()
	e.idleWorkers = append(e.idleWorkers, w)
	e.workersMu.Unlock()
}

// WithStore implements [command.Work]: it runs f with its own handle of the store, on behalf of
// the client with that id, at a fresh instant. It may block until the world starts.
func (e *Engine) WithStore(client int64, f func(st env.Store)) {
	e.withWorker(client, func(w *Worker) { f(w.Store) })
}

// withWorker runs f with a worker that has entered the store, on behalf of the client with that
// id. It may block until the world starts. It keeps no worker while the world is stopped:
// thousands of goroutines may wait, and workers take many kilobytes each and are never freed.
func (e *Engine) withWorker(client int64, f func(w *Worker)) {
	for {
		w := e.takeWorker()
		if w.enter() {
			e.inWorker(w, client, f)
			return
		}
		open := opening(w.world)
		e.returnWorker(w)
		<-open
	}
}

// enter enters the store, and returns false if another goroutine has stopped the world. On a store
// without keys enter returns true.
func (w *Worker) enter() bool { return w.world == nil || w.world.Enter() }

func (w *Worker) leave() {
	if w.world != nil {
		w.world.Leave()
	}
}

// opening returns a channel that receives when the world is started, or at once if the world is not
// stopped.
func opening(world env.World) <-chan struct{} {
	open := make(chan struct{}, 1)
	world.NotifyStart(func() { open <- struct{}{} })
	return open
}

// Outside implements [command.Work]: it runs f, which may wait for a disk, outside of the store,
// so that a goroutine that stops the world does not wait for f. It enters the store again
// afterwards. If the caller is not in the background, f runs inside the store.
func (e *Engine) Outside(c *command.Call, f func()) {
	if !c.Client.Background {
		f()
		return
	}
	w := workerOf(c.Worker)
	w.leave()
	defer func() {
		for !w.enter() {
			<-opening(w.world)
		}
		c.Store.Refresh()
	}()
	f()
}

// Aside implements [command.Work]: it runs f as Outside does, and gives the turn of the command back while f runs.
func (e *Engine) Aside(c *command.Call, f func()) {
	if !c.Client.Background {
		f()
		return
	}
	slots := e.slotsOf(c.Cmd)
	e.Outside(c, func() {
		<-slots
		defer func() { slots <- struct{}{} }()
		f()
	})
}

func (e *workers) inWorker(w *Worker, client int64, f func(w *Worker)) {
	defer e.returnWorker(w)
	defer w.leave()
	w.Actor = client
	w.Store.Refresh()
	f(w)
}

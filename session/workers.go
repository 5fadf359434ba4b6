package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// NewWorker returns the state of a feeding goroutine. It implements [transport.Handler].
func (e *Engine) NewWorker() transport.Worker { return e.newWorker() }

func (e *Engine) newWorker() *Worker {
	w := &Worker{
		Worker: command.Worker{Store: e.Options.NewStore(), Server: &e.Server},
		tally:  tally{counts: make([]stats.Counter, len(e.Commands.Entries)), clock: clock{exact: true, paces: e.paces}},
		input:  input{room: make([][]byte, 0, command.RequestWords)},
	}
	w.Owner, w.Call = w, &w.ctx
	if e.Options.Remote != nil {
		w.flight, w.Collector = newFlight(), w
	}
	if e.Options.Persistence != nil {
		w.Journal, _ = w.Store.(env.Recording)
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

// EachWorker implements [command.Host].
func (e *Engine) EachWorker(f func(w *command.Worker)) (since limit.Instant) {
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	for _, w := range e.everyWorker {
		f(&w.Worker)
	}
	return e.countedSince
}

// takeWorker returns an idle or a new worker, for a goroutine in the background.
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

// WithStore implements [command.Host].
func (e *Engine) WithStore(client int64, f func(st env.Store)) {
	e.withWorker(client, func(w *Worker) { f(w.Store) })
}

// withWorker is WithStore for a function that also needs the worker. While the world is stopped it
// keeps no worker: thousands of goroutines may wait, and workers take many kilobytes each and are
// never freed.
func (e *Engine) withWorker(client int64, f func(w *Worker)) {
	for {
		w := e.takeWorker()
		if w.Store.Enter() {
			e.inWorker(w, client, f)
			return
		}
		open := opening(w.Store)
		e.returnWorker(w)
		<-open
	}
}

// opening returns a channel that receives when the world is started.
func opening(st env.Store) <-chan struct{} {
	open := make(chan struct{}, 1)
	st.NotifyStart(func() { open <- struct{}{} })
	return open
}

// Outside implements [command.Host].
func (e *Engine) Outside(c *command.Call, f func()) {
	if !c.Client.Background {
		f()
		return
	}
	c.Store.Leave()
	defer func() {
		for !c.Store.Enter() {
			<-opening(c.Store)
		}
		c.Store.Refresh()
	}()
	f()
}

// inWorker runs f with a worker that has entered the store, and returns the worker.
func (e *workers) inWorker(w *Worker, client int64, f func(w *Worker)) {
	defer e.returnWorker(w)
	defer w.Store.Leave()
	w.Actor = client
	w.Store.Refresh()
	f(w)
}

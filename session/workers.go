package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// NewWorker returns scratch for a feeding goroutine.
func (e *Engine) NewWorker() transport.Worker { return e.newWorker() }

func (e *Engine) newWorker() *Worker {
	l := &Worker{
		Worker: command.Worker{Store: e.Options.NewStore(), Server: &e.Server},
		tally:  tally{counts: make([]stats.Counter, len(e.Commands.Entries)), clock: clock{exact: true, paces: e.paces}},
		input:  input{room: make([][]byte, 0, command.RequestWords)},
	}
	l.Owner, l.Call = l, &l.ctx
	if e.Options.Remote != nil {
		l.flight, l.Collector = newFlight(), l
	}
	if e.Options.Persistence != nil {
		l.Journal, _ = l.Store.(env.Recording)
	}
	l.OnError = l.noteError
	l.w.OnError = l.OnError
	l.ctx = command.Call{Worker: &l.Worker, W: &l.w}
	l.Equip()
	e.workersMu.Lock()
	if len(e.everyWorker) == 0 {
		e.countedSince = e.Options.Now()
	}
	e.everyWorker = append(e.everyWorker, l)
	e.workersMu.Unlock()
	return l
}

// EachWorker implements [command.Host].
func (e *Engine) EachWorker(f func(w *command.Worker)) (since limit.Instant) {
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	for _, l := range e.everyWorker {
		f(&l.Worker)
	}
	return e.countedSince
}

// takeWorker lends a worker to a goroutine of Offload.
func (e *Engine) takeWorker() *Worker {
	e.workersMu.Lock()
	if n := len(e.idleWorkers); n > 0 {
		l := e.idleWorkers[n-1]
		e.idleWorkers = e.idleWorkers[:n-1]
		e.workersMu.Unlock()
		return l
	}
	e.workersMu.Unlock()
	return e.newWorker()
}

func (e *workers) returnWorker(l *Worker) {
	e.workersMu.Lock()
	e.idleWorkers = append(e.idleWorkers, l)
	e.workersMu.Unlock()
}

// WithStore implements [command.Host].
func (e *Engine) WithStore(client int64, f func(st env.Store)) {
	e.withWorker(client, func(l *Worker) { f(l.Store) })
}

// withWorker is WithStore for what needs the worker, too. While the world is stopped there
// is none: thousands may wait for it, and workers are many kilobytes each and stay.
func (e *Engine) withWorker(client int64, f func(l *Worker)) {
	for {
		l := e.takeWorker()
		if l.Store.Enter() {
			e.inWorker(l, client, f)
			return
		}
		open := opening(l.Store)
		e.returnWorker(l)
		<-open
	}
}

// opening is told once the world lock is open.
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

// inWorker runs f on a worker that has entered the store, and gives the worker back.
func (e *workers) inWorker(l *Worker, client int64, f func(l *Worker)) {
	defer e.returnWorker(l)
	defer l.Store.Leave()
	l.Actor = client
	l.Store.Refresh()
	f(l)
}

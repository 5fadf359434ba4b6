package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/stats"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/transport"
)

// NewLane returns scratch for a feeding goroutine.
func (e *Engine) NewLane() transport.Lane { return e.newLane() }

func (e *Engine) newLane() *Lane {
	l := &Lane{
		Worker: command.Worker{Store: e.Opts.NewStore(), Server: &e.Server},
		tally:  tally{counts: make([]stats.Counter, len(e.Commands.Entries)), sample: sampleEvery},
		input:  input{args: make([][]byte, 0, command.AheadArgs)},
	}
	l.Lane, l.Call = l, &l.ctx
	if e.Opts.Persistence != nil {
		l.Journal, _ = l.Store.(command.Recording)
	}
	l.OnError = l.noteError
	l.w.OnError = l.OnError
	l.ctx = command.Call{Worker: &l.Worker, W: &l.w}
	l.Equip()
	e.lanesMu.Lock()
	if len(e.lanes) == 0 {
		e.countedSince = e.Opts.Now()
	}
	e.lanes = append(e.lanes, l)
	e.lanesMu.Unlock()
	return l
}

// EachWorker implements [Host].
func (e *Engine) EachWorker(f func(w *command.Worker)) (since limit.Instant) {
	e.lanesMu.Lock()
	defer e.lanesMu.Unlock()
	for _, l := range e.lanes {
		f(&l.Worker)
	}
	return e.countedSince
}

// slowLane lends a lane to a goroutine of Offload.
func (e *Engine) slowLane() *Lane {
	e.lanesMu.Lock()
	if n := len(e.idle); n > 0 {
		l := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.lanesMu.Unlock()
		return l
	}
	e.lanesMu.Unlock()
	return e.newLane()
}

func (e *workers) returnSlowLane(l *Lane) {
	e.lanesMu.Lock()
	e.idle = append(e.idle, l)
	e.lanesMu.Unlock()
}

// WithStore implements [command.Host].
func (e *Engine) WithStore(client int64, f func(st command.Store)) {
	e.withLane(client, func(l *Lane) { f(l.Store) })
}

// withLane is WithStore for what needs the lane, too. While the gate is closed there
// is none: thousands may wait for it, and lanes are many kilobytes each and stay.
func (e *Engine) withLane(client int64, f func(l *Lane)) {
	for {
		l := e.slowLane()
		if l.Store.Enter() {
			e.inLane(l, client, f)
			return
		}
		open := make(chan struct{}, 1)
		l.Store.WaitOpen(func() { open <- struct{}{} })
		e.returnSlowLane(l)
		<-open
	}
}

// inLane runs f on a lane that has entered the store, and gives the lane back.
func (e *workers) inLane(l *Lane, client int64, f func(l *Lane)) {
	defer e.returnSlowLane(l)
	defer l.Store.Leave()
	l.Actor = client
	l.Store.Refresh()
	f(l)
}

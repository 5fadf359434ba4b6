package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// Park implements [command.Host].
func (e *Engine) Park(p *command.Wait) { sessionOf(p.Client).parked.Store(p) }

// EachWorker implements [Host].
func (e *Engine) EachWorker(f func(w *command.Worker)) (since limit.Instant) {
	e.lanesMu.Lock()
	defer e.lanesMu.Unlock()
	for _, l := range e.lanes {
		f(&l.Worker)
	}
	return e.countedSince
}

// CountError implements [command.Host].
func (e *Engine) CountError(err resp.Error, from resp.Origin) { e.errors.Add(err, from) }

// Offload implements [command.Host].
func (e *Engine) Offload(c *command.Call, size func(st command.Store) int, f func(st command.Store, w *resp.Writer)) {
	p := c.NewWait()
	p.Looked = c.Cmd.Flags&command.FlagWrite == 0
	changes := c.MayChange(c.Cmd, c.Args)
	if remember := e.ReadsElsewhere(c); remember != nil {
		look := f
		f = func(st command.Store, w *resp.Writer) {
			remember()
			look(st, w)
			remember()
		}
	}
	c.Park(p)
	var begin func()
	begin = func() {
		memory := e.takeTurn(e.slowSlots, p, size)
		defer e.endTurn(e.slowSlots, memory)
		p.Do(func(st command.Store) {
			if changes && e.AfterPause(p.OrForgo(func() { e.Spawn(begin) })) {
				return
			}
			p.Finish(func(w *resp.Writer) {
				if p.Gone.Load() {
					return
				}
				if memory != nil {
					w.Pieces, w.Defers = memory, true
					defer w.CopyDeferred()
				}
				f(st, w)
			})
		})
	}
	e.Spawn(begin)
}

// Spawn runs f on a goroutine that Close waits for. After Close nothing is run:
// no client is left that could miss it.
func (e *background) Spawn(f func()) {
	e.slowMu.Lock()
	defer e.slowMu.Unlock()
	if !e.closed {
		e.slow.Go(f)
	}
}

// SpawnCall implements [command.Host].
func (e *Engine) SpawnCall(much bool, f func(c *command.Call)) {
	e.Spawn(func() {
		if much {
			e.besideSlots <- struct{}{}
			defer func() { <-e.besideSlots }()
		}
		e.withLane(0, func(l *Lane) { f(&command.Call{Worker: &l.Worker}) })
	})
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

// Drain answers every waiting command as if its time were over, so that a server
// that stops owes nobody an answer. No command waits from then on.
func (e *Engine) Drain() {
	e.Draining.Store(true)
	e.forgoPaused()
	for _, s := range e.clients.list() {
		if p := s.parked.Load(); p != nil && p.GiveUp != nil && p.Claim() {
			p.End(false)
		}
	}
}

// Unblock implements [command.Host]. The answer is found beside the caller, who may be on a
// loop.
func (e *Engine) Unblock(cl *command.Client, withError bool) bool {
	p := sessionOf(cl).parked.Load()
	return p != nil && p.Interrupt(withError)
}

package commands

import (
	"github.com/cellserver/cellserver/resp"
)

// Park implements [Host].
func (e *Engine) Park(p *Parked) { sessionOf(p.client).parked.Store(p) }

// CountError implements [Host].
func (e *Engine) CountError(err resp.Error, from resp.Origin) { e.errors.Add(err, from) }

// Offload implements [Host].
func (e *Engine) Offload(c *Ctx, size func(st Store) int, f func(st Store, w *resp.Writer)) {
	p := c.parking()
	p.looked = c.Cmd.Flags&FlagWrite == 0
	changes := c.mayChange(c.Cmd, c.Args)
	if remember := c.readBeside(); remember != nil {
		look := f
		f = func(st Store, w *resp.Writer) {
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
		p.do(func(st Store) {
			if changes && e.behindPause(p.orForgo(func() { e.Spawn(begin) })) {
				return
			}
			p.Finish(func(w *resp.Writer) {
				if p.gone.Load() {
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

// WithStore implements [Host].
func (e *Engine) WithStore(client int64, f func(st Store)) {
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
	l.observer.actor = client
	l.Store.Refresh()
	f(l)
}

// Drain answers every waiting command as if its time were over, so that a server
// that stops owes nobody an answer. No command waits from then on.
func (e *Engine) Drain() {
	e.draining.Store(true)
	e.forgoPaused()
	for _, s := range e.clients.list() {
		if p := s.parked.Load(); p != nil && p.giveUp != nil && p.claim() {
			p.end(false)
		}
	}
}

// interrupt ends the wait of s early; it reports whether there was one that can be
// ended. The answer is found beside the caller, who may be on a loop.
func (s *Session) interrupt(withError bool) bool {
	p := s.parked.Load()
	return p != nil && p.interrupt(withError)
}

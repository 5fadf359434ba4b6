package commands

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/resp"
)

// Parked is a command that waits: for a timer, for a slow command that runs
// beside the loops, for room under a limit. Its session is not fed until it is
// finished, and what its client sent behind it waits too.
//
// Whoever wants to answer claims it first; only one can. Any goroutine may. All
// fields but state are set before the command is parked or by the one who answers.
type Parked struct {
	client *Client
	cmd    *Command
	proto  int
	state  atomic.Int32
	gone   atomic.Bool // the client is: set when the session is closed

	// What the answer consists of, valid once state is parkedDone: the reply, then
	// what resume writes. refused is the key of a limit that the wait was for and did
	// not get; broken says that the client is to be closed.
	reply   resp.Reply
	refused []byte
	broken  bool
	// failed says that the reply is an error, or has one in it.
	failed bool
	// looked says that it has had no effect, so that its reply waits for no disk and is
	// true whatever becomes of that.
	looked bool
	// again says that there is no answer: the command has yet to be run, and is so from
	// its first byte when the session is fed again.
	again bool
	// kept is how many bytes the command took over from its session: a transaction that
	// runs alone, and what it watches. Used by the goroutine that feeds the session.
	kept int
	// slice does a part of a command that goes on in slices, and reports whether there is
	// more to do; nil for all others. It waits for nothing: its session is fed again as soon
	// as others have had their turn.
	slice func(c *Ctx) (more bool)

	// resume runs when the session is fed again, on the goroutine that feeds it: for
	// an answer that changes the session. nil if there is nothing to do.
	resume func(w *resp.Writer)
	// cancel stops what was being waited for, without an answer, when the client
	// has gone away. nil if there is nothing to stop. It must not block.
	cancel func()
	// giveUp writes the answer of a wait that is ended early (CLIENT UNBLOCK,
	// shutdown). nil for a wait that cannot be, because it ends soon by itself.
	giveUp func(st Store, w *resp.Writer)
}

const (
	parkedWaiting int32 = iota
	parkedClaimed
	parkedWriting
	parkedDone
	parkedForgotten
)

// parking begins to park the running command: the caller fills in what may end the
// wait and hands the result to Park.
func (c *Ctx) parking() *Parked {
	return &Parked{client: &c.Client.session.Client, cmd: c.Cmd, proto: c.Client.proto}
}

// Park makes the running command wait. The handler must return soon, without
// having written anything.
func (c *Ctx) Park(p *Parked) {
	c.Client.session.parked.Store(p)
	if p.giveUp != nil && c.server.draining.Load() {
		p.interrupt(false) // Drain may have looked before this wait began
	}
}

// claim reserves the right to answer.
func (p *Parked) claim() bool { return p.state.CompareAndSwap(parkedWaiting, parkedClaimed) }

// answer gives the reply of a command that the caller has claimed and wakes its
// session. fill may be nil.
func (p *Parked) answer(fill func(w *resp.Writer)) {
	w := resp.Writer{Proto: p.proto, Ledger: p.client.session.engine.opts.Ledger, OnError: p.noteError}
	if fill != nil {
		fill(&w)
	}
	if p.state.CompareAndSwap(parkedClaimed, parkedWriting) {
		p.reply = w.Take()
		p.state.Store(parkedDone)
		if p.gone.Load() {
			p.forget()
		}
		p.client.peer.Wake()
	}
}

// noteError is the OnError of an answer.
func (p *Parked) noteError(e resp.Error, from resp.Origin) {
	p.failed = true
	p.client.session.engine.errors.Add(e, from)
}

// forget releases an answer for which there is nobody any more.
func (p *Parked) forget() {
	if p.state.CompareAndSwap(parkedDone, parkedForgotten) {
		p.reply.Release()
	}
}

// Finish answers the command unless somebody else has, and reports whether it did.
func (p *Parked) Finish(fill func(w *resp.Writer)) bool {
	if !p.claim() {
		return false
	}
	p.answer(fill)
	return true
}

// work runs f, which may answer p, beside the loops.
func (p *Parked) work(f func(st Store)) {
	p.client.session.engine.spawn(func() { p.do(f) })
}

// do runs f on a store of its own. If f panics, p is answered with an error and its
// client closed, and nobody else is harmed.
func (p *Parked) do(f func(st Store)) {
	e := p.client.session.engine
	e.withStoreFor(p.client.id, func(st Store) {
		defer func() {
			if r := recover(); r != nil {
				e.recovered(r)
				st.Release()
				p.claim()
				p.answer(func(w *resp.Writer) {
					w.Error(resp.ErrInternal)
					p.broken = true
				})
			}
		}()
		f(st)
	})
}

// interrupt ends the wait of s early; it reports whether there was one that can be
// ended. The answer is found beside the caller, who may be on a loop.
func (s *Session) interrupt(withError bool) bool {
	p := s.parked.Load()
	return p != nil && p.interrupt(withError)
}

func (p *Parked) interrupt(withError bool) bool {
	if p.giveUp == nil || !p.claim() {
		return false
	}
	p.client.session.engine.spawn(func() { p.end(withError) })
	return true
}

// end answers a claimed command as if its time were over, or with an error.
func (p *Parked) end(withError bool) {
	p.do(func(st Store) {
		p.answer(func(w *resp.Writer) {
			p.giveUp(st, w)
			if withError {
				w.Cut(0)
				w.Error(errUnblocked)
			}
		})
	})
}

const errUnblocked resp.Error = "UNBLOCKED client unblocked via CLIENT UNBLOCK"

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

// mayWait reports whether the running command may wait for room: not inside a
// transaction, not beside the loops, and not once the server stops.
func (c *Ctx) mayWait() bool {
	return !c.Client.exclusive && !c.Client.beside && !c.server.draining.Load()
}

// Offload runs f beside the loops, with the session parked until it returns. f
// must not touch the Ctx: what it needs of the arguments has to be copied before.
// Inside a transaction, and beside the loops, f runs at once.
func (c *Ctx) Offload(f func(st Store, w *resp.Writer)) { c.offload(nil, f) }

// offload is Offload for a reply that may be large: the memory that it takes, which size
// says, is waited for first. nil is for one that is not.
func (c *Ctx) offload(size func(st Store) int, f func(st Store, w *resp.Writer)) {
	if c.Client.exclusive || c.Client.beside {
		f(c.Store, c.W)
		return
	}
	p, e := c.parking(), c.server.engine
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
			if changes && e.behindPause(p.orForgo(func() { e.spawn(begin) })) {
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
	e.spawn(begin)
}

// spawn runs f on a goroutine that Close waits for. After Close nothing is run:
// no client is left that could miss it.
func (e *background) spawn(f func()) {
	e.slowMu.Lock()
	defer e.slowMu.Unlock()
	if !e.closed {
		e.slow.Go(f)
	}
}

// withStore runs f on a lane of its own, at a fresh instant, once the gate is
// open. Only for goroutines that may block.
func (e *Engine) withStore(f func(st Store)) { e.withStoreFor(0, f) }

// withStoreFor is withStore for the work of a client.
func (e *Engine) withStoreFor(client int64, f func(st Store)) {
	e.withLane(client, func(l *Lane) { f(l.Store) })
}

// withLane is withStoreFor for what needs the lane, too. While the gate is closed there
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

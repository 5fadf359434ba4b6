package commands

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/resp"
)

// Parked is a command that waits: for a timer, for a slow command that runs
// beside the loops, for room under a limit. Its session is not fed until it is
// finished, and what its client sent behind it waits too.
//
// Whoever wants to answer claims it first; only one can. Any goroutine may.
type Parked struct {
	session *Session
	proto   int
	state   atomic.Int32
	reply   []byte // valid once state is parkedDone

	// cancel stops what was being waited for, without an answer, when the client
	// has gone away. nil if there is nothing to stop. It must not block.
	cancel func()
	// giveUp writes the answer of a wait that is ended early (CLIENT UNBLOCK,
	// shutdown). nil for a wait that cannot be. It may use the store and block.
	giveUp func(w *resp.Writer)
}

const (
	parkedWaiting int32 = iota
	parkedClaimed
	parkedDone
)

// Park makes the running command wait. The handler must return soon, without
// having written anything.
func (c *Ctx) Park() *Parked {
	p := &Parked{session: c.S, proto: c.S.proto}
	c.S.parked.Store(p)
	return p
}

// claim reserves the right to answer.
func (p *Parked) claim() bool { return p.state.CompareAndSwap(parkedWaiting, parkedClaimed) }

// answer writes the reply of a command that the caller has claimed and wakes its
// session.
func (p *Parked) answer(fill func(w *resp.Writer)) {
	w := resp.Writer{Proto: p.proto}
	fill(&w)
	p.reply = w.Buf
	p.state.Store(parkedDone)
	p.session.peer.Wake()
}

// Finish answers the command unless somebody else has, and reports whether it did.
func (p *Parked) Finish(fill func(w *resp.Writer)) bool {
	if !p.claim() {
		return false
	}
	p.answer(fill)
	return true
}

// interrupt ends the wait of s early; it reports whether there was one that can be
// ended. The answer is found beside the caller, who may be on a loop.
func (s *Session) interrupt(withError bool) bool {
	p := s.parked.Load()
	if p == nil || p.giveUp == nil || !p.claim() {
		return false
	}
	s.engine.spawn(func() {
		p.answer(func(w *resp.Writer) {
			p.giveUp(w)
			if withError {
				w.Buf = w.Buf[:0]
				w.Error(errUnblocked)
			}
		})
	})
	return true
}

const errUnblocked resp.Error = "UNBLOCKED client unblocked via CLIENT UNBLOCK"

// Offload runs f beside the loops, with the session parked until it returns. f
// must not touch the Ctx: what it needs of the arguments has to be copied before.
// Inside a transaction f runs at once.
func (c *Ctx) Offload(f func(st Store, w *resp.Writer)) {
	if c.S.exclusive {
		f(c.Store, c.W)
		return
	}
	p, e := c.Park(), c.engine
	e.spawn(func() {
		e.slowSlots <- struct{}{}
		defer func() { <-e.slowSlots }()
		e.withStore(func(st Store) {
			p.Finish(func(w *resp.Writer) { e.guarded(w, func() { f(st, w) }) })
		})
	})
}

// spawn runs f on a goroutine that Close waits for. After Close nothing is run:
// no client is left that could miss it.
func (e *Engine) spawn(f func()) {
	e.slowMu.Lock()
	defer e.slowMu.Unlock()
	if !e.closed {
		e.slow.Go(f)
	}
}

// withStore runs f on a lane of its own, at a fresh instant, once the gate is
// open. Only for goroutines that may block.
func (e *Engine) withStore(f func(st Store)) {
	l := e.slowLane()
	defer e.returnSlowLane(l)
	for !l.Store.Enter() {
		open := make(chan struct{}, 1)
		l.Store.WaitOpen(func() { open <- struct{}{} })
		<-open
	}
	defer l.Store.Leave()
	l.Store.Refresh()
	f(l.Store)
}

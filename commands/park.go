package commands

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/resp"
)

// Parked is a command that waits: for a timer, for a slow command that runs
// beside the loops, for a permit. Its session is not fed until Finish, and what
// its client sent behind it waits too. Any goroutine may finish it.
type Parked struct {
	session *Session
	proto   int
	// cancel stops what was being waited for when the client goes away; it may
	// run more than once and after Finish.
	cancel func()
	// interrupt, if not nil, answers early when an operator or the end of the
	// server says so (CLIENT UNBLOCK, shutdown).
	interrupt func(w *resp.Writer)
	state     atomic.Int32 // 0 waiting, 1 being finished, 2 done
	reply     []byte       // valid in state 2
}

const (
	parkedWaiting int32 = iota
	parkedFinishing
	parkedDone
)

// Park makes the running command wait. The handler must return at once, without
// having written anything. cancel may be nil.
func (c *Ctx) Park(cancel func()) *Parked {
	p := &Parked{session: c.S, proto: c.S.proto, cancel: cancel}
	c.S.parked.Store(p)
	return p
}

// Finish answers the parked command with what fill writes and wakes the session.
// Only the first call counts; it reports whether this was it.
func (p *Parked) Finish(fill func(w *resp.Writer)) bool {
	if !p.state.CompareAndSwap(parkedWaiting, parkedFinishing) {
		return false
	}
	w := resp.Writer{Proto: p.proto}
	fill(&w)
	p.reply = w.Buf
	p.state.Store(parkedDone)
	p.session.peer.Wake()
	return true
}

// Offload runs f beside the loops, with the session parked until it returns. f
// must not touch the Ctx: what it needs of the arguments has to be copied before.
// Inside a transaction f runs at once.
func (c *Ctx) Offload(f func(st Store, w *resp.Writer)) {
	if c.S.exclusive {
		f(c.Store, c.W)
		return
	}
	p := c.Park(nil)
	e := c.engine
	e.slow.Go(func() {
		e.slowSlots <- struct{}{}
		defer func() { <-e.slowSlots }()
		l := e.slowLane()
		defer e.returnSlowLane(l)
		e.whenOpen(l.Store)
		defer l.Store.Leave()
		l.Store.Refresh()
		p.Finish(func(w *resp.Writer) { e.guarded(w, func() { f(l.Store, w) }) })
	})
}

// whenOpen enters the store, waiting for the gate if it has to. Only for the
// goroutines of Offload, which may block.
func (e *Engine) whenOpen(st Store) {
	for !st.Enter() {
		open := make(chan struct{}, 1)
		st.WaitOpen(func() { open <- struct{}{} })
		<-open
	}
}

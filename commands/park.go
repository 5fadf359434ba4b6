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
	return &Parked{client: c.Client, cmd: c.Cmd, proto: c.Client.proto}
}

// Park makes the running command wait. The handler must return soon, without
// having written anything.
func (c *Ctx) Park(p *Parked) {
	c.server.host.Park(p)
	if p.giveUp != nil && c.server.draining.Load() {
		p.interrupt(false) // Drain may have looked before this wait began
	}
}

// claim reserves the right to answer.
func (p *Parked) claim() bool { return p.state.CompareAndSwap(parkedWaiting, parkedClaimed) }

// answer gives the reply of a command that the caller has claimed and wakes its
// session. fill may be nil.
func (p *Parked) answer(fill func(w *resp.Writer)) {
	w := resp.Writer{Proto: p.proto, Ledger: p.client.server.opts.Ledger, OnError: p.noteError}
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
	p.client.server.host.CountError(e, from)
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
	p.client.server.host.Spawn(func() { p.do(f) })
}

// do runs f on a store of its own. If f panics, p is answered with an error and its
// client closed, and nobody else is harmed.
func (p *Parked) do(f func(st Store)) {
	e := p.client.server.host
	e.WithStore(p.client.id, func(st Store) {
		defer func() {
			if r := recover(); r != nil {
				e.Recovered(r)
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

func (p *Parked) interrupt(withError bool) bool {
	if p.giveUp == nil || !p.claim() {
		return false
	}
	p.client.server.host.Spawn(func() { p.end(withError) })
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

// mayWait reports whether the running command may wait for room: not inside a
// transaction, not beside the loops, and not once the server stops.
func (c *Ctx) mayWait() bool {
	return !c.Client.exclusive && !c.Client.beside && !c.server.draining.Load()
}

// Offload runs f beside the loops, with the session parked until it returns. f
// must not touch the Ctx: what it needs of the arguments has to be copied before.
// Inside a transaction, and beside the loops, f runs at once.
func (c *Ctx) Offload(f func(st Store, w *resp.Writer)) { c.offload(nil, f) }

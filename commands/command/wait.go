package command

import (
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

// The states of a wait: nobody answers yet, somebody has claimed the answer, writes it, has
// written it, and nobody is left who wants it.
const (
	WaitPending int32 = iota
	waitClaimed
	waitAnswering
	WaitAnswered
	waitForgotten
)

// waitCost is what a command that waits takes beside what it says itself: its Wait, closures, timers.
const waitCost = 1 << 10

// NewWait begins to park the running command: the caller fills in what may end the
// wait and hands the result to Park. kept is about how many bytes the wait keeps in memory of its own,
// such as copies of keys, beside the Args that it is given: the account of the client has them.
func (c *Call) NewWait(kept int) *Wait {
	return &Wait{Client: c.Client, Cmd: c.Cmd, Proto: c.Client.Proto, Kept: kept}
}

// Reserve puts what the wait keeps, its Args included, on the account of all clients, and reports whether
// maxmemory-clients leaves room for it. A command that waits for an event that may never come, and keeps
// memory meanwhile, asks before it does. Release takes it back where the command does not park after all.
func (p *Wait) Reserve() bool {
	cost := int64(p.cost())
	if !p.Client.Server.Host.Keep(cost) {
		return false
	}
	p.reserved = cost
	return true
}

// Release takes back what [Wait.Reserve] has put on the account, if it has.
func (p *Wait) Release() {
	p.Client.Server.Host.Keep(-p.reserved)
	p.reserved = 0
}

// cost is how many bytes the wait keeps in all.
func (p *Wait) cost() int { return p.Kept + waitCost + ArgsCost(p.Args) }

// Park makes the running command wait. The handler must return soon, without
// having written anything.
func (c *Call) Park(p *Wait) {
	p.Kept = p.cost()
	c.Server.Host.Park(p)
	p.Release() // the client has it on its account now
	if p.OnTimeout != nil && c.Server.Draining.Load() {
		p.interrupt(p.atStop()) // Drain may have looked before this wait began
	}
}

// Claim reserves the right to answer.
func (p *Wait) Claim() bool { return p.State.CompareAndSwap(WaitPending, waitClaimed) }

// Answer gives the reply of a command that the caller has claimed and wakes its
// session. fill may be nil.
func (p *Wait) Answer(fill func(w *resp.Writer)) {
	w := resp.Writer{Proto: p.Proto, Ledger: p.Client.Server.Options.Ledger, OnError: p.NoteError}
	if fill != nil {
		fill(&w)
	}
	if p.State.CompareAndSwap(waitClaimed, waitAnswering) {
		p.Reply = w.Take()
		p.State.Store(WaitAnswered)
		if p.Gone.Load() {
			p.Forget()
		}
		p.Client.Peer.Wake()
	}
}

// NoteError is the OnError of an answer.
func (p *Wait) NoteError(e resp.Error, from resp.Origin) {
	p.Failed = true
	p.Client.Server.Host.CountError(e, from)
}

// Forget releases an answer for which there is nobody any more.
func (p *Wait) Forget() {
	if p.State.CompareAndSwap(WaitAnswered, waitForgotten) {
		p.Reply.Release()
	}
}

// Refuse answers a command that still waits for its turn in the background with err, and reports whether
// it did. The memory of its words is on its way then.
func (p *Wait) Refuse(err resp.Error) bool {
	if p.Unbegun == nil || !p.Finish(func(w *resp.Writer) { w.Error(err) }) {
		return false
	}
	close(p.Unbegun)
	return true
}

// Begun reports whether a command that ends by itself has begun: its memory is on its way, too.
func (p *Wait) Begun() bool {
	return p.OnTimeout == nil && (p.Slice != nil || p.State.Load() != WaitPending)
}

// Finish answers the command unless somebody else has, and reports whether it did.
func (p *Wait) Finish(fill func(w *resp.Writer)) bool {
	if !p.Claim() {
		return false
	}
	p.Answer(fill)
	return true
}

// Work runs f, which may answer p, in the background.
func (p *Wait) Work(f func(st env.Store)) {
	p.Client.Server.Host.Spawn(func() { p.Do(f) })
}

// Do runs f on a store of its own. If f panics, p is answered with an error and its
// client closed, and nobody else is harmed.
func (p *Wait) Do(f func(st env.Store)) {
	e := p.Client.Server.Host
	e.WithStore(p.Client.ID, func(st env.Store) {
		defer func() {
			if r := recover(); r != nil {
				e.Recovered(r)
				st.Unlock()
				p.Claim()
				p.Answer(func(w *resp.Writer) {
					w.Error(resp.ErrInternal)
					p.Broken = true
				})
			}
		}()
		f(st)
	})
}

// Interrupt ends a wait before its time, with the reply of a timeout or with an error. It
// reports whether the command was waiting and can be ended so.
func (p *Wait) Interrupt(withError bool) bool {
	if withError {
		return p.interrupt(endWithError)
	}
	return p.interrupt(endAsTimeout)
}

func (p *Wait) interrupt(how ending) bool {
	if p.OnTimeout == nil {
		return false
	}
	if !p.Claim() {
		if !p.Retracts {
			return false
		}
		p.wanted.Store(int32(how))
		if !p.Claim() {
			return p.State.Load() == waitClaimed // who has claimed it may give it back
		}
	}
	p.Client.Server.Host.Spawn(func() { p.end(how) })
	return true
}

// Stop ends a wait because the server stops, unless it has been answered or cannot be ended. It is
// done when Stop returns, unless the wait Retracts: that may ask a Remote once more.
func (p *Wait) Stop() {
	switch {
	case p.OnTimeout == nil:
	case p.Retracts:
		p.interrupt(p.atStop())
	case p.Claim():
		p.end(p.atStop())
	}
}

// ending is how a wait is ended before its time. As [Wait.wanted] 0 is none.
type ending int32

const (
	endAsTimeout ending = 1 + iota
	endWithError
	endUnanswered
)

// atStop is how the wait ends if the server stops.
func (p *Wait) atStop() ending {
	if p.Unanswered {
		return endUnanswered
	}
	return endAsTimeout
}

// Retract gives a claim back, of which nothing has come. If somebody wanted to end the wait
// meanwhile it ends now.
func (p *Wait) Retract() {
	p.State.Store(WaitPending)
	switch how := ending(p.wanted.Load()); {
	case how != 0:
		p.interrupt(how)
	case p.Client.Server.Draining.Load():
		p.interrupt(p.atStop())
	}
}

// end answers a claimed command as if its time were over or with an error, or closes its client.
func (p *Wait) end(how ending) {
	p.Do(func(st env.Store) {
		p.Answer(func(w *resp.Writer) {
			p.OnTimeout(st, w)
			switch how {
			case endWithError:
				w.Cut(0)
				w.Error(whyUnblocked(p.Client.Server))
			case endUnanswered:
				w.Cut(0)
				p.Broken = true
			case endAsTimeout:
			}
		})
	})
}

const (
	errUnblocked   resp.Error = "UNBLOCKED client unblocked via CLIENT UNBLOCK"
	errRoleChanged resp.Error = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
)

// whyUnblocked says what has ended a wait. On a replica nobody begins to wait for a change.
func whyUnblocked(s *Server) resp.Error {
	if s.Halts.Load()&HaltReadOnly != 0 {
		return errRoleChanged
	}
	return errUnblocked
}

// MayWait reports whether the running command may wait for room: not inside a
// transaction, not in the background, and not once the server stops.
func (c *Call) MayWait() bool {
	return !c.Client.Exclusive && !c.Client.Background && !c.Server.Draining.Load()
}

// StopKeepsFromWaiting reports whether MayWait is false for no other reason than that the server stops.
// Commands whose wait is [Wait.Unanswered] close their client then, without an answer.
func (c *Call) StopKeepsFromWaiting() bool {
	return !c.Client.Exclusive && !c.Client.Background && c.Server.Draining.Load()
}

// OrDrop is for [Host.AfterPause]: begin, or close the client of a command that never will.
func (p *Wait) OrDrop(begin func()) func(goOn bool) {
	return func(goOn bool) {
		if goOn {
			begin()
		} else {
			p.Finish(func(*resp.Writer) { p.Broken = true })
		}
	}
}

// ReadsBeside reports whether the command runs elsewhere until it is done. What it has
// read may change meanwhile, and the client be told only behind the reply, so that
// nothing is told before.
func (p *Wait) ReadsBeside() bool { return p.OnTimeout == nil && !p.RunAgain && p.Slice == nil }

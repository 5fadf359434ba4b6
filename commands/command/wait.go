package command

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

// Wait is a command that waits: for a timer, for a slow command that runs in the background, or for
// room under a limit. Its session is not fed until the wait is over, so input of the client behind
// the command waits, too.
//
// To reply, a goroutine first claims the wait; only one can. Any goroutine may do that. All fields
// except State are set before the command is parked, or by the goroutine that has claimed it.
type Wait struct {
	Client *Client
	Cmd    *Command
	Proto  int
	State  atomic.Int32
	Gone   atomic.Bool // the client has disconnected: set when the session is closed

	// Reply, Decided and Broken are valid after State is WaitAnswered. The output is Reply and then
	// what Resume writes. Decided is the result of a wait for room, nil for other waits. Broken
	// says that the client is to be closed.
	Reply   resp.Reply
	Decided *Decided
	Broken  bool
	// Failed says that the reply is an error or contains one. Rejected says that the command was
	// never run: see [Wait.Forbidden].
	Failed, Rejected bool
	// NoEffect says that the command has had no effect. Its reply does not wait for the disk, since
	// it is true even if the journal fails.
	NoEffect bool
	// RunAgain says that there is no reply: the command has not run yet, and runs from its
	// beginning when the session is fed again.
	RunAgain bool
	// Kept is how many bytes the wait keeps: the argument of [Call.NewWait], what Park adds, and a
	// transaction of the session that runs exclusively. Only the goroutine that feeds the session
	// uses it.
	Kept     int
	reserved int64 // what [Wait.Reserve] has charged
	// Args are the arguments that are needed to check the user's permission again; nil for a
	// command that is not checked again.
	Args [][]byte
	// Unbegun is closed by [Wait.Refuse]; nil for a command that does not wait for its turn in the
	// background, or that has too much to undo.
	Unbegun chan struct{}
	// Slice does a part of a command that runs in slices, and reports whether there is more to do;
	// nil for all other commands. Such a wait is for nothing: the session is fed again after other
	// sessions have had their turn.
	Slice func(c *Call) (more bool)

	// Reclaimable says that the goroutine that claimed the wait may release it again. wanted is how
	// the wait was to be ended meanwhile.
	Reclaimable bool
	wanted      atomic.Int32

	stats.Waiting // how long the command has run

	// Resume runs when the session is fed again, on the goroutine that feeds it: for a reply that
	// changes the session. nil if there is nothing to do.
	Resume func(w *resp.Writer)
	// Render is Resume for the replies of several commands. It applies CLIENT REPLY itself.
	Render func(c *Call)
	// Cancel stops whatever the command waits for, without a reply, after the client has
	// disconnected. nil if there is nothing to stop. It must not block.
	Cancel func()
	// OnTimeout writes the reply of a wait that is ended early (CLIENT UNBLOCK, shutdown). nil for
	// a wait that cannot be ended early because it ends soon by itself.
	OnTimeout func(st env.Store, w *resp.Writer)
	// Unanswered says that a server which stops closes the connection instead of replying with
	// OnTimeout: that reply would claim that the time is over or that there were no elements, and
	// both are wrong.
	Unanswered bool
}

// The states of a wait: not claimed, claimed, being answered, answered, and discarded because the
// client is gone.
const (
	WaitPending int32 = iota
	waitClaimed
	waitAnswering
	WaitAnswered
	waitForgotten
)

// waitCost is the memory in bytes that a wait takes in addition to its Kept and Args: the Wait,
// closures, timers.
const waitCost = 1 << 10

// NewWait begins to park the running command. The caller fills in what may end the wait and passes
// the result to Park. kept is about how many bytes of memory the wait keeps, such as copies of
// keys, in addition to its Args. They are charged to the client.
func (c *Call) NewWait(kept int) *Wait {
	return &Wait{Client: c.Client, Cmd: c.Cmd, Proto: c.Client.Proto, Kept: kept}
}

// Reserve charges the memory of the wait, its Args included, to the total of all clients, and
// reports whether maxmemory-clients leaves room for it. Call it before a command waits for an event
// that may never come and keeps memory meanwhile. If the command does not park after all, call
// Release.
func (p *Wait) Reserve() bool {
	cost := int64(p.cost())
	if !p.Client.Server.Host.Keep(cost) {
		return false
	}
	p.reserved = cost
	return true
}

// Release refunds what [Wait.Reserve] has charged, if anything.
func (p *Wait) Release() {
	p.Client.Server.Host.Keep(-p.reserved)
	p.reserved = 0
}

// cost returns how many bytes the wait keeps in all.
func (p *Wait) cost() int { return p.Kept + waitCost + ArgsCost(p.Args) }

// Park makes the running command wait. The handler must return soon and must not have written
// anything.
func (c *Call) Park(p *Wait) {
	p.Kept = p.cost()
	c.Server.Host.Park(p)
	p.Release() // the client is charged for it now
	if p.OnTimeout != nil && c.Server.Draining.Load() {
		p.interrupt(p.atStop()) // Drain may have checked before this wait began
	}
}

// Claim reserves the right to reply, and reports whether it did.
func (p *Wait) Claim() bool { return p.State.CompareAndSwap(WaitPending, waitClaimed) }

// Answer sets the reply of a command that the caller has claimed, and wakes its session. fill may
// be nil.
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

// NoteError is the OnError function of the writer of a reply.
func (p *Wait) NoteError(e resp.Error, from resp.Origin) {
	p.Failed = true
	p.Client.Server.Host.CountError(e, from)
}

// Forget releases a reply whose client is gone.
func (p *Wait) Forget() {
	if p.State.CompareAndSwap(WaitAnswered, waitForgotten) {
		p.Reply.Release()
	}
}

// Refuse replies with err to a command that still waits for its turn in the background, and reports
// whether it did. The memory of its arguments is released soon after.
func (p *Wait) Refuse(err resp.Error) bool {
	if p.Unbegun == nil || !p.Finish(func(w *resp.Writer) { w.Error(err) }) {
		return false
	}
	close(p.Unbegun)
	return true
}

// Begun reports whether a command that ends by itself has started or was answered: its memory is
// released soon, too.
func (p *Wait) Begun() bool {
	return p.OnTimeout == nil && (p.Slice != nil || p.State.Load() != WaitPending)
}

// Finish answers the command unless another goroutine has claimed it, and reports whether it did.
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

// Do runs f with its own handle of the store. If f panics, p is answered with an error and only its
// client is closed.
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

// Interrupt ends a wait early, with the reply of a timeout or with an error. It reports whether the
// command was waiting and can be ended early.
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
		if !p.Reclaimable {
			return false
		}
		p.wanted.Store(int32(how))
		if !p.Claim() {
			return p.State.Load() == waitClaimed // the goroutine that has claimed p may release it
		}
	}
	p.Client.Server.Host.Spawn(func() { p.end(how) })
	return true
}

// Stop ends a wait because the server stops, unless the wait was answered or cannot be ended. The
// wait is over when Stop returns, except if it Retracts: it may ask a Remote once more.
func (p *Wait) Stop() {
	switch {
	case p.OnTimeout == nil:
	case p.Reclaimable:
		p.interrupt(p.atStop())
	case p.Claim():
		p.end(p.atStop())
	}
}

// ending is how a wait is ended early. In [Wait.wanted] 0 means that it is not.
type ending int32

const (
	endAsTimeout ending = 1 + iota
	endWithError
	endUnanswered
)

// atStop returns how the wait ends if the server stops.
func (p *Wait) atStop() ending {
	if p.Unanswered {
		return endUnanswered
	}
	return endAsTimeout
}

// Unclaim releases a claim without a reply. If the wait was to be ended meanwhile, it ends now.
func (p *Wait) Unclaim() {
	p.State.Store(WaitPending)
	switch how := ending(p.wanted.Load()); {
	case how != 0:
		p.interrupt(how)
	case p.Client.Server.Draining.Load():
		p.interrupt(p.atStop())
	}
}

// end answers a claimed command with the reply of a timeout or with an error, or closes its client.
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

// whyUnblocked returns the error of a wait that was ended. On a replica it is the change of role,
// since no command can start to wait for a change there.
func whyUnblocked(s *Server) resp.Error {
	if s.Halts.Load()&HaltReadOnly != 0 {
		return errRoleChanged
	}
	return errUnblocked
}

// MayWait reports whether the running command may wait for room: not inside a transaction, not in
// the background, and not while the server stops.
func (c *Call) MayWait() bool {
	return !c.Client.Exclusive && !c.Client.Background && !c.Server.Draining.Load()
}

// StopKeepsFromWaiting reports whether MayWait is false only because the server stops. A command
// whose wait is [Wait.Unanswered] then closes its client without a reply.
func (c *Call) StopKeepsFromWaiting() bool {
	return !c.Client.Exclusive && !c.Client.Background && c.Server.Draining.Load()
}

// ResumeOrDrop returns a function for [Host.AfterPause]. It calls begin or, if the command must not run
// any more, closes the client.
func (p *Wait) ResumeOrDrop(begin func()) func(proceed bool) {
	return func(proceed bool) {
		if proceed {
			begin()
		} else {
			p.Finish(func(*resp.Writer) { p.Broken = true })
		}
	}
}

// ReadsBeside reports whether the command runs on another goroutine until it is done. Keys that it
// has read may change meanwhile. The client must get their invalidations after the reply, so none
// are sent before it.
func (p *Wait) ReadsBeside() bool { return p.OnTimeout == nil && !p.RunAgain && p.Slice == nil }

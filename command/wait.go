package command

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

// Wait is a command that waits: for a timer, for its run in the background, for elements, or for
// room under a limit. Its session is not fed until the wait is over, so later commands of the
// client wait, too.
//
// To reply, a goroutine first claims the wait with [Wait.Claim]. Any goroutine may claim it, but only
// one at a time has the claim. The fields other than State and Gone are set before the command is
// parked, or by the goroutine that has claimed the wait, unless their comments say otherwise.
type Wait struct {
	Client *Client
	Cmd    *Command
	Proto  int
	State  atomic.Int32
	Gone   atomic.Bool // set when the session is closed, since the client has disconnected

	// Reply, Decided and Broken are valid after State has become WaitAnswered. The client gets
	// Reply, and then what Resume writes. Decided is the decision of a wait for room, and nil for
	// other waits. Broken says that the client has to be closed.
	Reply   resp.Reply
	Decided *Decided
	Broken  bool
	// Failed says that the reply is an error or contains one. Rejected says that the command never
	// ran, because its user may no longer call it: see [Wait.Forbidden].
	Failed, Rejected bool
	// NoEffect says that the command has had no effect. Its reply is sent without waiting for the
	// journal, since the reply is correct even if the journal fails.
	NoEffect bool
	// RunAgain says that there is no reply: the command has not run yet, and runs from its
	// beginning when the session is fed again.
	RunAgain bool
	// Kept is the memory in bytes that the wait keeps: the argument of [Call.NewWait], what Park
	// adds, and a transaction of the session that runs exclusively. Only the goroutine that feeds
	// the session uses it.
	Kept     int
	reserved int64 // the bytes that Reserve has charged
	// Args are the arguments by which the user's permission is checked again before the command
	// continues; nil for a command that is not checked again.
	Args [][]byte
	// Unbegun is closed by [Wait.Refuse]. It is nil for a command that does not wait for its turn
	// in the background, and for EXEC, which cannot be refused because its transaction would have
	// to be undone.
	Unbegun chan struct{}
	// Slice does a part of a command that runs in slices, and reports whether there is more to do;
	// nil for all other commands. Such a wait needs no event: the session is fed again after other
	// sessions have had their turn.
	Slice func(c *Call) (more bool)

	// Reclaimable says that the goroutine that has claimed the wait may release it with
	// [Wait.Unclaim]. wanted is the ending that was requested while the wait was claimed.
	Reclaimable bool
	wanted      atomic.Int32

	stats.Waiting // the time for which the command has run

	// Resume runs when the session is fed again, on the goroutine that feeds it, for a reply that
	// changes the session. It may write more of the reply to w. It is nil if there is nothing to
	// do.
	Resume func(w *resp.Writer)
	// Render runs in place of Resume if the output consists of the replies of several commands. It
	// applies CLIENT REPLY itself.
	Render func(c *Call)
	// Cancel ends what the command waits for, without a reply, after the client has disconnected.
	// It must not block. It is nil if there is nothing to end.
	Cancel func()
	// OnTimeout writes the reply of a wait that is ended early, such as by CLIENT UNBLOCK or by the
	// stop of the server, and cleans up. If the wait ends with an error or without a reply,
	// OnTimeout is called, too, and what it has written is discarded. OnTimeout is nil for a wait
	// that cannot be ended early because it ends soon by itself.
	OnTimeout func(st env.Store, w *resp.Writer)
	// Unanswered says that a server that stops closes the connection instead of replying with
	// OnTimeout. That reply would wrongly say that the timeout has passed or that there were no
	// elements.
	Unanswered bool
}

// These are the values of Wait.State: not claimed; claimed; being answered; answered; and answered
// but discarded, because the client is gone.
const (
	WaitPending int32 = iota
	waitClaimed
	waitAnswering
	WaitAnswered
	waitForgotten
)

// waitCost is the memory in bytes that a Wait takes in addition to its Kept and Args: the struct,
// closures and timers.
const waitCost = 1 << 10

// NewWait returns a new wait for the running command. The caller fills in what may end the wait and
// passes the result to Park. kept is about how many bytes of memory the wait keeps in addition to
// its Args, such as copies of keys. These bytes are charged to the client.
func (c *Call) NewWait(kept int) *Wait {
	return &Wait{Client: c.Client, Cmd: c.Cmd, Proto: c.Client.Proto, Kept: kept}
}

// Reserve charges the memory of the wait, including its Args, to the total of all clients. It
// returns false, and charges nothing, if that would exceed maxmemory-clients. Call it before a
// command begins a wait that keeps memory and may never end. If the command does not park after
// all, call Release.
func (p *Wait) Reserve() bool {
	cost := int64(p.cost())
	if !p.Client.Server.Host.Waits.Keep(cost) {
		return false
	}
	p.reserved = cost
	return true
}

// Release gives back what [Wait.Reserve] has charged, if anything. A second call does nothing.
func (p *Wait) Release() {
	p.Client.Server.Host.Waits.Keep(-p.reserved)
	p.reserved = 0
}

// cost returns the memory in bytes that the wait keeps in all.
func (p *Wait) cost() int { return p.Kept + waitCost + ArgsCost(p.Args) }

// Park makes the running command wait for p, and charges the memory of p to the client. The handler
// must return soon after it and must not write a reply. If the server is stopping, Park ends the
// wait at once, provided that the wait can be ended early.
func (c *Call) Park(p *Wait) {
	p.Kept = p.cost()
	c.Server.Host.Waits.Park(p)
	p.Release() // Park has charged the memory to the client
	if p.OnTimeout != nil && c.Server.Draining.Load() {
		p.interrupt(p.atStop()) // the server may have ended all other waits just before this wait began
	}
}

// Claim reserves the right to reply for the caller. It returns false if another goroutine has
// claimed the wait or if it was answered.
func (p *Wait) Claim() bool { return p.State.CompareAndSwap(WaitPending, waitClaimed) }

// Answer has fill write the reply of a command that the caller has claimed, sets that reply, and
// wakes the session. fill may be nil: then the reply is empty. If the wait was answered before,
// Answer discards what fill has written.
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

// NoteError is the OnError function of the writer of p's reply: it sets p.Failed and counts the
// error e.
func (p *Wait) NoteError(e resp.Error, from resp.Origin) {
	p.Failed = true
	p.Client.Server.Host.Calls.CountError(e, from)
}

// Forget releases the reply of an answered wait whose client is gone. Later calls do nothing.
func (p *Wait) Forget() {
	if p.State.CompareAndSwap(WaitAnswered, waitForgotten) {
		p.Reply.Release()
	}
}

// Refuse replies with err to a command that still waits for its turn in the background, and closes
// p.Unbegun. It returns false if the command does not wait for a turn or has been claimed. The
// memory of its arguments is released soon after.
func (p *Wait) Refuse(err resp.Error) bool {
	if p.Unbegun == nil || !p.Finish(func(w *resp.Writer) { w.Error(err) }) {
		return false
	}
	close(p.Unbegun)
	return true
}

// Begun reports whether the memory of a waiting command is released soon: the command ends by
// itself, and it runs in slices, has been claimed, or was answered.
func (p *Wait) Begun() bool {
	return p.OnTimeout == nil && (p.Slice != nil || p.State.Load() != WaitPending)
}

// Finish claims the wait and answers it with the reply that fill writes. It returns false if
// another goroutine has claimed the wait.
func (p *Wait) Finish(fill func(w *resp.Writer)) bool {
	if !p.Claim() {
		return false
	}
	p.Answer(fill)
	return true
}

// Work runs f in the background with a handle of the store of its own: see [Wait.Do]. f may answer
// p.
func (p *Wait) Work(f func(st env.Store)) {
	p.Client.Server.Host.Work.SpawnWait(func() { p.Do(f) })
}

// Do runs f with a handle of the store of its own. If f panics, Do releases the locks of the
// handle, answers p with an error, and has only the client of p closed. Do may block, so event
// loops must not call it.
func (p *Wait) Do(f func(st env.Store)) {
	host := &p.Client.Server.Host
	host.Work.WithStore(p.Client.ID, func(st env.Store) {
		defer func() {
			if r := recover(); r != nil {
				host.Calls.Recovered(r)
				if locks, is := st.(env.Locker); is {
					locks.Unlock()
				}
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

// Interrupt ends the wait early, with an error if withError is set, and otherwise with the reply of
// a timeout. It returns false if the wait is over or cannot be ended early. The reply is written on
// another goroutine.
func (p *Wait) Interrupt(withError bool) bool {
	if withError {
		return p.interrupt(endWithError)
	}
	return p.interrupt(endAsTimeout)
}

// interrupt ends the wait early in the way that how says, on another goroutine, and reports whether
// it does. It returns false if the wait cannot be ended early. If a goroutine has claimed a
// Reclaimable wait, interrupt requests the ending and returns true; the wait then ends if that
// goroutine releases it.
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
	p.Client.Server.Host.Work.SpawnWait(func() { p.end(how) })
	return true
}

// Stop ends the wait because the server stops, unless the wait was claimed or cannot be ended
// early. When Stop returns, the wait is over, except for a Reclaimable wait: that one ends on
// another goroutine, and the goroutine that has claimed it may ask a Remote once more.
func (p *Wait) Stop() {
	switch {
	case p.OnTimeout == nil:
	case p.Reclaimable:
		p.interrupt(p.atStop())
	case p.Claim():
		p.end(p.atStop())
	}
}

// ending says how a wait is ended early. In Wait.wanted, 0 means that no ending was requested.
type ending int32

const (
	endAsTimeout ending = 1 + iota
	endWithError
	endUnanswered
)

// atStop returns how the wait ends when the server stops.
func (p *Wait) atStop() ending {
	if p.Unanswered {
		return endUnanswered
	}
	return endAsTimeout
}

// Unclaim releases a claim of the caller without a reply. If an ending was requested meanwhile, or
// the server is stopping, the wait ends now.
func (p *Wait) Unclaim() {
	p.State.Store(WaitPending)
	switch how := ending(p.wanted.Load()); {
	case how != 0:
		p.interrupt(how)
	case p.Client.Server.Draining.Load():
		p.interrupt(p.atStop())
	}
}

// end answers a wait that the caller has claimed, in the way that how names: with the reply of a
// timeout, with an error, or by closing the client without a reply.
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
	// These are the errors of a blocked command that is ended early. The texts are those of Redis.
	errUnblocked   resp.Error = "UNBLOCKED client unblocked via CLIENT UNBLOCK"
	errRoleChanged resp.Error = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
)

// whyUnblocked returns the error of a wait that is ended with an error. On a replica the reason is
// the change of the role, since no command can begin to wait for a change there.
func whyUnblocked(s *Server) resp.Error {
	if s.Halts.Load()&HaltReadOnly != 0 {
		return errRoleChanged
	}
	return errUnblocked
}

// MayWait reports whether the running command may wait for room or for elements. It may not inside
// a transaction or script, in the background, or while the server stops.
func (c *Call) MayWait() bool {
	return !c.Client.Exclusive && !c.Client.Background && !c.Server.Draining.Load()
}

// StopKeepsFromWaiting reports whether [Call.MayWait] is false only because the server stops. A
// command with an Unanswered wait then closes its client without a reply.
func (c *Call) StopKeepsFromWaiting() bool {
	return !c.Client.Exclusive && !c.Client.Background && c.Server.Draining.Load()
}

// ResumeOrDrop returns a function for [Pauses].AfterPause. The function calls begin if proceed is
// true. Otherwise it answers the wait by closing the client.
func (p *Wait) ResumeOrDrop(begin func()) func(proceed bool) {
	return func(proceed bool) {
		if proceed {
			begin()
		} else {
			p.Finish(func(*resp.Writer) { p.Broken = true })
		}
	}
}

// ReadsBeside reports whether the command runs on another goroutine until its end, or waits for the
// decision of a Remote. Keys that it has read may change meanwhile. The client has to receive the
// invalidations of these keys after the reply, so none are sent before the reply.
func (p *Wait) ReadsBeside() bool { return p.OnTimeout == nil && !p.RunAgain && p.Slice == nil }

// Waits parks clients whose commands wait.
type Waits interface {
	// Park makes the client of p wait for p. Keep adds bytes, which may be negative, to the memory
	// that waits and transactions of all clients take. If the sum would exceed maxmemory-clients,
	// Keep adds nothing and returns false.
	Park(p *Wait)
	Keep(bytes int64) bool
	// Unblock ends the wait of cl, with an error if withError is set, and otherwise as if the wait
	// had reached its timeout. It returns false if cl does not wait or its wait cannot be ended
	// early.
	Unblock(cl *Client, withError bool) bool
}

package command

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/resp"
)

// Wait is a command that waits: for a timer, for a slow command that runs
// beside the loops, for room under a limit. Its session is not fed until it is
// finished, and what its client sent behind it waits too.
//
// Whoever wants to answer claims it first; only one can. Any goroutine may. All
// fields but state are set before the command is parked or by the one who answers.
type Wait struct {
	Client *Client
	Cmd    *Command
	Proto  int
	State  atomic.Int32
	Gone   atomic.Bool // the client is: set when the session is closed

	// What the answer consists of, valid once state is ParkedDone: the reply, then
	// what resume writes. refused is the key of a limit that the wait was for and did
	// not get; broken says that the client is to be closed.
	Reply   resp.Reply
	Refused []byte
	Broken  bool
	// Failed says that the reply is an error, or has one in it.
	Failed bool
	// Looked says that it has had no effect, so that its reply waits for no disk and is
	// true whatever becomes of that.
	Looked bool
	// Again says that there is no answer: the command has yet to be run, and is so from
	// its first byte when the session is fed again.
	Again bool
	// Kept is how many bytes the command took over from its session: a transaction that
	// runs alone, and what it watches. Used by the goroutine that feeds the session.
	Kept int
	// Slice does a part of a command that goes on in slices, and reports whether there is
	// more to do; nil for all others. It waits for nothing: its session is fed again as soon
	// as others have had their turn.
	Slice func(c *Call) (more bool)

	// Resume runs when the session is fed again, on the goroutine that feeds it: for
	// an answer that changes the session. nil if there is nothing to do.
	Resume func(w *resp.Writer)
	// Cancel stops what was being waited for, without an answer, when the client
	// has gone away. nil if there is nothing to stop. It must not block.
	Cancel func()
	// GiveUp writes the answer of a wait that is ended early (CLIENT UNBLOCK,
	// shutdown). nil for a wait that cannot be, because it ends soon by itself.
	GiveUp func(st Store, w *resp.Writer)
}

const (
	ParkedWaiting int32 = iota
	parkedClaimed
	parkedWriting
	ParkedDone
	parkedForgotten
)

// NewWait begins to park the running command: the caller fills in what may end the
// wait and hands the result to Park.
func (c *Call) NewWait() *Wait {
	return &Wait{Client: c.Client, Cmd: c.Cmd, Proto: c.Client.Proto}
}

// Park makes the running command wait. The handler must return soon, without
// having written anything.
func (c *Call) Park(p *Wait) {
	c.Server.Host.Park(p)
	if p.GiveUp != nil && c.Server.Draining.Load() {
		p.Interrupt(false) // Drain may have looked before this wait began
	}
}

// Claim reserves the right to answer.
func (p *Wait) Claim() bool { return p.State.CompareAndSwap(ParkedWaiting, parkedClaimed) }

// Answer gives the reply of a command that the caller has claimed and wakes its
// session. fill may be nil.
func (p *Wait) Answer(fill func(w *resp.Writer)) {
	w := resp.Writer{Proto: p.Proto, Ledger: p.Client.Server.Opts.Ledger, OnError: p.NoteError}
	if fill != nil {
		fill(&w)
	}
	if p.State.CompareAndSwap(parkedClaimed, parkedWriting) {
		p.Reply = w.Take()
		p.State.Store(ParkedDone)
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
	if p.State.CompareAndSwap(ParkedDone, parkedForgotten) {
		p.Reply.Release()
	}
}

// Finish answers the command unless somebody else has, and reports whether it did.
func (p *Wait) Finish(fill func(w *resp.Writer)) bool {
	if !p.Claim() {
		return false
	}
	p.Answer(fill)
	return true
}

// Work runs f, which may answer p, beside the loops.
func (p *Wait) Work(f func(st Store)) {
	p.Client.Server.Host.Spawn(func() { p.Do(f) })
}

// Do runs f on a store of its own. If f panics, p is answered with an error and its
// client closed, and nobody else is harmed.
func (p *Wait) Do(f func(st Store)) {
	e := p.Client.Server.Host
	e.WithStore(p.Client.Id, func(st Store) {
		defer func() {
			if r := recover(); r != nil {
				e.Recovered(r)
				st.Release()
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

func (p *Wait) Interrupt(withError bool) bool {
	if p.GiveUp == nil || !p.Claim() {
		return false
	}
	p.Client.Server.Host.Spawn(func() { p.End(withError) })
	return true
}

// End answers a claimed command as if its time were over, or with an error.
func (p *Wait) End(withError bool) {
	p.Do(func(st Store) {
		p.Answer(func(w *resp.Writer) {
			p.GiveUp(st, w)
			if withError {
				w.Cut(0)
				w.Error(errUnblocked)
			}
		})
	})
}

const errUnblocked resp.Error = "UNBLOCKED client unblocked via CLIENT UNBLOCK"

// MayWait reports whether the running command may wait for room: not inside a
// transaction, not beside the loops, and not once the server stops.
func (c *Call) MayWait() bool {
	return !c.Client.Exclusive && !c.Client.Beside && !c.Server.Draining.Load()
}

// Offload runs f beside the loops, with the session parked until it returns. f
// must not touch the Call: what it needs of the arguments has to be copied before.
// Inside a transaction, and beside the loops, f runs at once.
func (c *Call) Offload(f func(st Store, w *resp.Writer)) { c.OffloadSized(nil, f) }

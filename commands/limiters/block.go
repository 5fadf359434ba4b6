package limiters

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
)

// wait is a client that waits under a key for room, or under several keys, in the order of
// arrival. Only the first of all its keys has a timer for the instant at which it may pass; the
// others are woken when they become the first. There is no polling.
type wait struct {
	parked  *command.Wait
	refs    []env.KeyRef // the keys, as Lock takes them
	tickets []any        // the places in their queues, all of which are taken under one lock
	ask     decide.Ask   // owns its bytes, and is never decided itself
	policy  *policy.Counts

	refusal resp.Error // set by who has claimed the answer: it may not be waited for any more

	due atomic.Bool // an attempt has been started and has not looked yet

	elsewhere

	mu        sync.Mutex
	bound     func() bool // guarded by mu: stops the timer of the timeout
	nextTry   func() bool // guarded by mu: stops the timer of the next attempt
	concluded bool        // guarded by mu: no further timer may start
}

// elsewhere is what a wait needs where a Remote decides.
type elsewhere struct {
	gone  atomic.Bool // the client is
	one   sync.Mutex  // held by an attempt
	fresh bool        // guarded by one: nobody has tried yet
}

// try charges if there is room. It is called with the key held, or with nobody else's
// answer depending on it.
func (w *wait) try(st env.Store) decide.Ask {
	a := w.own()
	st.Decide(&a)
	a.Decision = decisionOf(&a)
	return a
}

// own returns a copy of the ask that may be decided while others decide theirs.
func (w *wait) own() decide.Ask {
	a := w.ask
	a.Apart()
	return a
}

// look says whether there is room, likewise.
func (w *wait) look(st env.Store) decide.Ask {
	a := w.own()
	switch a.Family {
	case decide.Window:
		a.Window.Charge, a.Window.Block = slidingwindow.Peek, false
	case decide.Lease:
		a.Lease.Peek, a.Lease.Block = true, false
	case decide.Several:
		for i := range a.Clauses {
			a.Clauses[i].Peek = true
		}
	}
	st.Decide(&a)
	a.Decision = decisionOf(&a)
	return a
}

// lookBehind is look for a call that is not the first that waits. A member that holds a place needs no
// room: its lease is refreshed, and the call passes. A server that may change nothing at present, such as
// one that has just become a replica, refreshes none.
func (w *wait) lookBehind(st env.Store) (now decide.Ask, passes bool) {
	now = w.look(st)
	server := w.parked.Client.Server
	mayChange := server.Halts.Load()&command.HaltPaused == 0 && w.parked.Halted() == ""
	if w.ask.Family != decide.Lease || !mayChange || now.Err != nil || now.Decision.Refused != 0 {
		return now, false
	}
	renewal := w.own()
	renewal.Lease.Op, renewal.Lease.Block = concurrency.Renew, false
	if st.Decide(&renewal); renewal.Err != nil || renewal.Decision.Refused != 0 {
		return now, false
	}
	return w.look(st), true
}

// saysBlock reports whether BLOCK is among the words of a call.
func saysBlock(args [][]byte) bool {
	for _, word := range args[1:] {
		if arg.IsWord(word, "BLOCK") {
			return true
		}
	}
	return false
}

// waitFor answers a at once if that is possible, and otherwise parks the session
// until there is room or timeout (0: no bound) has passed. A call that can never
// pass is answered at once, and so is one for whose wait there is no memory.
func waitFor(c *command.Call, a *decide.Ask, timeout time.Duration) {
	bytes := a.Bytes()
	kept := bytes + waitingCost(a)
	w := &wait{parked: c.NewWait(kept), ask: *a, policy: countedBy(c)}
	w.ask.Own(make([]byte, 0, bytes))
	w.parked.Args, w.ask.WithDetails = waitingArgs(c, w.ask.Key), a.WithDetails && c.Cmd.Keys.Policy
	w.refs = []env.KeyRef{{DB: a.DB, Key: w.ask.Key}}
	if a.Family == decide.Several {
		w.refs = w.refs[:0]
		for i := range w.ask.Clauses {
			w.refs = append(w.refs, env.KeyRef{DB: a.DB, Key: w.ask.Clauses[i].Key})
		}
		w.ask.Key = w.ask.Clauses[0].Key // under which it is counted
	}
	room := w.parked.Reserve()
	if c.Server.Options.Remote != nil {
		if !room {
			c.Fail(resp.ErrOOM) // nothing is decided here that could be answered
			return
		}
		w.waitElsewhere(c, timeout)
		return
	}
	st := c.Store
	st.Lock(w.refs, nil)
	defer st.Unlock()
	first := w.enqueue(st)
	waits := false
	defer func() {
		if !waits {
			w.dequeue(st)
			w.parked.Release()
		}
	}()
	var now decide.Ask
	passes := first
	if first {
		now = w.try(st)
	} else {
		now, passes = w.lookBehind(st)
	}
	if passes && now.Decision.Refused == 0 || hopeless(&now) {
		c.Conclude(&now, answerWaited)
		return
	}
	if !room { // it is answered as if its timeout had passed
		now.Decision.Refused = max(now.Decision.Refused, 1)
		c.Conclude(&now, answerWaited)
		return
	}
	waits = true
	w.parked.Cancel = func() { w.parked.Work(w.leave) }
	w.parked.OnTimeout = w.giveUp
	if timeout > 0 {
		w.endAfter(st, timeout)
	}
	if first {
		w.tryAfter(st, w.retryAfter(st, &now))
	}
	c.Park(w.parked)
}

// ticketCost is what a place in the queue of a key takes, beside the key.
const ticketCost = 512

// waitingCost is what a wait for room keeps beside the bytes of its ask: the places in the queues of
// its keys, each with a copy of the key, and the clauses.
func waitingCost(a *decide.Ask) (n int) {
	if a.Family != decide.Several {
		return len(a.Key) + ticketCost
	}
	for i := range a.Clauses {
		n += len(a.Clauses[i].Key) + 2*ticketCost
	}
	return n
}

// waitingArgs are the words of a command that waits under key, as far as they say what its user has
// to be allowed.
func waitingArgs(c *command.Call, key []byte) [][]byte {
	if c.Cmd.Keys.Policy {
		return command.CloneArgs(c.Args[:3])
	}
	return [][]byte{nil, key} // it has one key
}

// enqueue takes a place in the queues of all keys, and reports whether it is the first of each.
func (w *wait) enqueue(st env.Store) (first bool) {
	first = true
	for _, ref := range w.refs {
		ticket, is := st.Enqueue(ref.DB, ref.Key, w.wake)
		w.tickets, first = append(w.tickets, ticket), first && is
	}
	return first
}

// first reports whether the place is the first in the queues of all keys.
func (w *wait) first(st env.Store) bool {
	for _, ticket := range w.tickets {
		if !st.First(ticket) {
			return false
		}
	}
	return true
}

// dequeue gives up the places.
func (w *wait) dequeue(st env.Store) {
	for _, ticket := range w.tickets {
		st.Dequeue(ticket)
	}
}

// wake starts an attempt, unless one is about to look anyway.
func (w *wait) wake() {
	if !w.due.Swap(true) {
		w.parked.Work(w.attempt)
	}
}

// endAfter starts the timer of the timeout.
func (w *wait) endAfter(st env.Store, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bound = st.AfterFunc(d, func() { w.parked.Interrupt(false) })
}

// tryAfter replaces the timer of the next attempt.
func (w *wait) tryAfter(st env.Store, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.concluded {
		return
	}
	if w.nextTry != nil {
		w.nextTry()
	}
	w.nextTry = st.AfterFunc(d, w.wake)
}

// retryAfter is when there may be room: when the decision says, or when the key
// expires, which EXPIRE may have made earlier than the limiter itself knows.
func (w *wait) retryAfter(st env.Store, now *decide.Ask) time.Duration {
	after := now.Decision.RetryAfter
	for _, ref := range w.refs {
		if at, has, _ := st.Expiry(ref.DB, ref.Key); has {
			after = min(after, at.Sub(st.Now()))
		}
	}
	return after
}

// hopeless reports whether a call as now can never pass.
func hopeless(now *decide.Ask) bool {
	return now.Err != nil || now.Decision.Refused != 0 && now.Decision.RetryAfter == limit.NoRetry
}

// attempt decides for the first in the queue, and answers it if it may pass or never will.
// It does so once nothing is locked: by then the effect has been recorded, and the session,
// which may be fed at once, waits for all that has.
func (w *wait) attempt(st env.Store) {
	if w.parked.Client.Server.Host.AfterPause(w.goOn) {
		return // it stays due
	}
	w.due.Store(false)
	decideOn := w.decide
	if w.parked.Client.Server.Options.Remote != nil {
		decideOn = w.decideElsewhere
	}
	now, over := decideOn(st)
	if !over {
		return
	}
	w.parked.Answer(func(out *resp.Writer) { w.answer(out, &now) })
}

// decided notes how the wait has ended.
func (w *wait) decided(now *decide.Ask) {
	if now.Err == nil {
		w.parked.Decided = &command.Decided{Key: w.ask.Key, Decision: now.Decision, Policy: w.policy}
	}
}

// answer writes the answer of a wait that is over.
func (w *wait) answer(out *resp.Writer, now *decide.Ask) {
	switch {
	case w.refusal != "":
		out.Error(w.refusal)
	case now.Err == nil:
		writeUse(out, now, &now.Decision)
	case errors.Is(now.Err, limit.ErrNotKept):
		out.Error(command.Misconf(w.parked.Client.Server.Options.Persistence.Fault()))
	default:
		out.Error(command.StoreError(now.Err))
	}
}

// decide reports whether the wait is over, with its answer claimed, and with what. Whether
// there is room is looked at before the answer is claimed, so that whoever ends the wait
// meanwhile finds it unclaimed, and nothing is charged that nobody is told of.
func (w *wait) decide(st env.Store) (now decide.Ask, over bool) {
	st.Lock(w.refs, nil)
	defer st.Unlock()
	goesOn := false
	defer func() {
		if !goesOn { // be it that deciding panics
			w.end(st) // before the client can know
		}
	}()
	if !w.first(st) {
		goesOn = true
		return now, false
	}
	now = w.look(st)
	if now.Decision.Refused != 0 && !hopeless(&now) {
		goesOn = true
		w.tryAfter(st, w.retryAfter(st, &now))
		return now, false
	}
	if !w.parked.Claim() {
		goesOn = true // for whoever was faster
		return now, false
	}
	if w.refusal = w.parked.Forbidden(st); w.refusal == "" {
		w.refusal = w.parked.Halted()
	}
	if w.refusal != "" {
		return now, true
	}
	now = w.try(st)
	w.decided(&now)
	return now, true
}

// waitElsewhere parks the session. A Remote decides, so that all of it is done in the
// background.
func (w *wait) waitElsewhere(c *command.Call, timeout time.Duration) {
	w.fresh = true
	w.enqueue(c.Store)
	w.parked.Retracts = true
	w.parked.OnTimeout = w.giveUp
	w.parked.Cancel = func() {
		w.gone.Store(true)
		w.parked.Work(w.leave)
	}
	if timeout > 0 {
		w.endAfter(c.Store, timeout)
	}
	c.Park(w.parked)
	w.wake()
}

// noticed is how late a waiter may notice that others have made room elsewhere.
const noticed = 100 * time.Millisecond

// decideElsewhere is decide where a Remote does. Nothing can be locked there: others may
// take the room between a look and a charge, and then the wait goes on.
func (w *wait) decideElsewhere(st env.Store) (now decide.Ask, over bool) {
	w.one.Lock()
	defer w.one.Unlock()
	goesOn := false
	defer func() {
		if !goesOn {
			w.end(st)
		}
	}()
	first, passes := w.first(st), false
	if !first || !w.fresh { // a refusal may charge: the others only look
		if first {
			now = w.look(st)
		} else {
			now, passes = w.lookBehind(st)
		}
		if !passes && !hopeless(&now) && (!first || now.Decision.Refused != 0) {
			goesOn = true
			w.lookAgain(st, first, &now)
			return now, false
		}
	}
	if !w.parked.Claim() {
		goesOn = true
		return now, false
	}
	if w.refusal = w.parked.Forbidden(st); w.refusal != "" {
		return now, true
	}
	if first && !hopeless(&now) {
		w.fresh = false
		if now = w.try(st); now.Decision.Refused != 0 && !hopeless(&now) {
			goesOn = true
			w.lookAgain(st, true, &now)
			if w.parked.Retract(); w.gone.Load() {
				w.leave(st)
			}
			return now, false
		}
	}
	w.decided(&now)
	return now, true
}

// lookAgain starts the timer of the next attempt, for the first in the queue. The others are
// woken.
func (w *wait) lookAgain(st env.Store, first bool, now *decide.Ask) {
	if first {
		w.tryAfter(st, min(noticed, now.Decision.RetryAfter))
	}
}

// goOn makes the attempt that a pause has put off. When the server stops, Drain ends the
// wait instead.
func (w *wait) goOn(yes bool) {
	if yes {
		w.parked.Work(w.attempt)
	}
}

// giveUp ends the wait with the refusal as it is now.
func (w *wait) giveUp(st env.Store, out *resp.Writer) {
	w.end(st)
	if w.refusal = w.parked.Forbidden(st); w.refusal != "" {
		out.Error(w.refusal)
		return
	}
	now, passes := w.lookBehind(st)
	if !passes && now.Decision.Refused == 0 {
		now.Decision.Refused = 1 // there may be room this very moment, but none was taken
	}
	w.decided(&now)
	w.answer(out, &now)
}

// leave ends the wait of a client that is gone.
func (w *wait) leave(st env.Store) {
	if w.parked.Claim() {
		w.end(st)
	}
}

// end stops the timers and gives up the place in the queue.
func (w *wait) end(st env.Store) {
	w.mu.Lock()
	w.concluded = true
	for _, stop := range []func() bool{w.bound, w.nextTry} {
		if stop != nil {
			stop()
		}
	}
	w.bound, w.nextTry = nil, nil
	w.mu.Unlock()
	w.dequeue(st)
}

// answerWaited replies what a call that might have waited is told at once.
func answerWaited(c *command.Call, a *decide.Ask) {
	noteDecided(c, a, &a.Decision)
	writeUse(c.W, a, &a.Decision)
}

// noteDecided counts the decision d on a: under its key, or on each clause under its own.
func noteDecided(c *command.Call, a *decide.Ask, d *limit.Decision) {
	if d.Refused != 0 {
		c.Denied++
	}
	if n := countedBy(c); n != nil {
		n.Answered(d.Refused != 0)
	}
	if a.Family != decide.Several {
		command.Scratch[scratch](c).note(c, a, a.Key, d)
		return
	}
	noteClauses(c, a)
}

// answerFive replies the five integers.
func answerFive(c *command.Call, a *decide.Ask) {
	decided(c, a)
	writeDecision(c.W, &a.Decision, a.Millis)
}

package limiters

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// wait is a client that waits under a key for room, in the order of arrival. Only
// the first of a key has a timer for the instant at which it may pass; the others
// are woken when they become the first. There is no polling.
type wait struct {
	parked *command.Wait
	ref    []command.KeyRef // the one key, as Hold takes it
	ticket any              // the place in the queue

	// try charges if there is room; look only says whether there is. Both are
	// called with the key held, or with nobody else's answer depending on it.
	try, look func(st command.Store) (limit.Decision, error)
	millis    bool

	due atomic.Bool // an attempt has been started and has not looked yet

	mu        sync.Mutex
	bound     func() bool // guarded by mu: stops the timer of the timeout
	nextTry   func() bool // guarded by mu: stops the timer of the next attempt
	concluded bool        // guarded by mu: no further timer may start
}

// waitFor answers w at once if that is possible, and otherwise parks the session
// until there is room or timeout (0: no bound) has passed. A call that can never
// pass is answered at once.
func waitFor(c *command.Call, key []byte, timeout time.Duration, w *wait) {
	w.parked = c.NewWait()
	w.ref = []command.KeyRef{{DB: c.Client.Selected(), Key: append([]byte(nil), key...)}}
	st := c.Store
	st.Lock(w.ref, nil)
	defer st.Unlock()
	var first bool
	w.ticket, first = st.Enqueue(w.ref[0].DB, w.ref[0].Key, w.wake)
	waits := false
	defer func() {
		if !waits {
			st.Dequeue(w.ticket)
		}
	}()
	decide := w.look
	if first {
		decide = w.try
	}
	d, err := decide(st)
	if err != nil || first && d.Refused == 0 || d.Refused != 0 && d.RetryAfter == limit.NoRetry {
		replyDecision(c, d, err, w.millis)
		return
	}
	waits = true
	w.parked.Cancel = func() { w.parked.Work(w.leave) }
	w.parked.OnTimeout = w.giveUp
	if timeout > 0 {
		w.endAfter(st, timeout)
	}
	if first {
		w.tryAfter(st, w.retryAfter(st, d))
	}
	c.Park(w.parked)
}

// wake starts an attempt, unless one is about to look anyway.
func (w *wait) wake() {
	if !w.due.Swap(true) {
		w.parked.Work(w.attempt)
	}
}

// endAfter starts the timer of the timeout.
func (w *wait) endAfter(st command.Store, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bound = st.AfterFunc(d, func() { w.parked.Interrupt(false) })
}

// tryAfter replaces the timer of the next attempt.
func (w *wait) tryAfter(st command.Store, d time.Duration) {
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
func (w *wait) retryAfter(st command.Store, d limit.Decision) time.Duration {
	at, has, _ := st.Expiry(w.ref[0].DB, w.ref[0].Key)
	if !has {
		return d.RetryAfter
	}
	return min(d.RetryAfter, at.Sub(st.Now()))
}

// attempt decides for the first in the queue, and answers it if it may pass or never will.
// It does so once nothing is locked: by then the effect has been recorded, and the session,
// which may be fed at once, waits for all that has.
func (w *wait) attempt(st command.Store) {
	if w.parked.Client.Server.Host.AfterPause(w.goOn) {
		return // it stays due
	}
	w.due.Store(false)
	d, over, err := w.decide(st)
	if !over {
		return
	}
	w.parked.Answer(func(out *resp.Writer) {
		if errors.Is(err, limit.ErrNotKept) {
			out.Error(command.Misconf(w.parked.Client.Server.Options.Persistence.Fault()))
			return
		}
		writeDecision(out, d, err, w.millis)
	})
}

// decide reports whether the wait is over, with its answer claimed, and with what. Whether
// there is room is looked at before the answer is claimed, so that whoever ends the wait
// meanwhile finds it unclaimed, and nothing is charged that nobody is told of.
func (w *wait) decide(st command.Store) (d limit.Decision, over bool, err error) {
	st.Lock(w.ref, nil)
	defer st.Unlock()
	goesOn := false
	defer func() {
		if !goesOn { // be it that deciding panics
			w.end(st) // before the client can know
		}
	}()
	if !st.First(w.ticket) {
		goesOn = true
		return d, false, nil
	}
	d, err = w.look(st)
	if err == nil && d.Refused != 0 && d.RetryAfter != limit.NoRetry {
		goesOn = true
		w.tryAfter(st, w.retryAfter(st, d))
		return d, false, nil
	}
	if !w.parked.Claim() {
		goesOn = true // for whoever was faster
		return d, false, nil
	}
	if d, err = w.try(st); err == nil && d.Refused != 0 {
		w.parked.Refused = w.ref[0].Key
	}
	return d, true, err
}

// goOn makes the attempt that a pause has put off. When the server stops, Drain ends the
// wait instead.
func (w *wait) goOn(yes bool) {
	if yes {
		w.parked.Work(w.attempt)
	}
}

// giveUp ends the wait with the refusal as it is now.
func (w *wait) giveUp(st command.Store, out *resp.Writer) {
	w.end(st)
	d, err := w.look(st)
	if d.Refused == 0 {
		d.Refused = 1 // there may be room this very moment, but none was taken
	}
	w.parked.Refused = w.ref[0].Key
	writeDecision(out, d, err, w.millis)
}

// leave ends the wait of a client that is gone.
func (w *wait) leave(st command.Store) {
	if w.parked.Claim() {
		w.end(st)
	}
}

// end stops the timers and gives up the place in the queue.
func (w *wait) end(st command.Store) {
	w.mu.Lock()
	w.concluded = true
	for _, stop := range []func() bool{w.bound, w.nextTry} {
		if stop != nil {
			stop()
		}
	}
	w.bound, w.nextTry = nil, nil
	w.mu.Unlock()
	st.Dequeue(w.ticket)
}

// replyDecision replies the five integers, or what went wrong.
func replyDecision(c *command.Call, d limit.Decision, err error, millis bool) {
	c.Failed = err != nil
	if err == nil {
		decided(c, c.Args[1], &d)
	} else if errors.Is(err, limit.ErrNotKept) {
		c.Fail(command.ErrNotKept)
		return
	}
	writeDecision(c.W, d, err, millis)
}

// writeDecision writes the five integers with times rounded up, or an error.
func writeDecision(w *resp.Writer, d limit.Decision, err error, millis bool) {
	switch {
	case err != nil:
		w.Error(command.StoreError(err))
	case millis:
		w.FiveInts(d.Refused, d.Limit, d.Remaining, limit.MillisUp(d.RetryAfter), limit.MillisUp(d.ResetAfter))
	default:
		w.FiveInts(d.Refused, d.Limit, d.Remaining, limit.SecondsUp(d.RetryAfter), limit.SecondsUp(d.ResetAfter))
	}
}

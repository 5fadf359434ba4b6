package commands

import (
	"sync"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// wait is a client that waits under a key for room, in the order of arrival. Only
// the first of a key has a timer for the instant at which it may pass; the others
// are woken when they become the first. There is no polling.
type wait struct {
	engine *Engine
	parked *Parked
	ref    []KeyRef // the one key, as Hold takes it
	ticket any      // the place in the queue

	// try charges if there is room; look only says whether there is. Both are
	// called with the key held, or with nobody else's answer depending on it.
	try, look func(st Store) (limit.Decision, error)
	millis    bool

	mu    sync.Mutex
	stops []func() bool // guarded by mu: running timers
	over  bool          // guarded by mu: no further timer may start
}

// waitFor answers w at once if that is possible, and otherwise parks the session
// until there is room or timeout (0: no bound) has passed. A call that can never
// pass is answered at once.
func (c *Ctx) waitFor(key []byte, timeout time.Duration, w *wait) {
	w.engine = c.engine
	w.ref = []KeyRef{{c.S.selected(), append([]byte(nil), key...)}}
	st := c.Store
	st.Hold(w.ref, nil)
	defer st.Release()
	var first bool
	w.ticket, first = st.Enqueue(w.ref[0].DB, w.ref[0].Key, func() { w.engine.spawn(w.attempt) })
	decide := w.look
	if first {
		decide = w.try
	}
	d, err := decide(st)
	if err != nil || first && d.Refused == 0 || d.Refused != 0 && d.RetryAfter == limit.NoRetry {
		st.Dequeue(w.ticket)
		c.replyDecision(d, err, w.millis)
		return
	}
	w.parked = c.Park()
	w.parked.cancel = func() { w.engine.spawn(w.leave) }
	w.parked.giveUp = w.giveUp
	if timeout > 0 {
		w.after(st, timeout, func() { w.parked.Finish(w.giveUp) })
	}
	if first {
		w.after(st, d.RetryAfter, w.attempt)
	}
}

// after starts a timer that runs f, unless the wait is over.
func (w *wait) after(st Store, d time.Duration, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.stops = append(w.stops, st.AfterFunc(d, func() { w.engine.spawn(f) }))
	}
}

// attempt decides for the first in the queue. Whether there is room is looked at
// before the answer is claimed, so that whoever ends the wait meanwhile finds it
// unclaimed, and nothing is charged that nobody is told of.
func (w *wait) attempt() {
	w.engine.withStore(func(st Store) {
		st.Hold(w.ref, nil)
		defer st.Release()
		if !st.First(w.ticket) {
			return
		}
		d, err := w.look(st)
		if err == nil && d.Refused != 0 && d.RetryAfter != limit.NoRetry {
			w.after(st, d.RetryAfter, w.attempt)
			return
		}
		if !w.parked.claim() {
			return
		}
		d, err = w.try(st)
		w.end(st)
		w.parked.answer(func(out *resp.Writer) { writeDecision(out, d, err, w.millis) })
	})
}

// giveUp ends the wait with the refusal as it is now.
func (w *wait) giveUp(out *resp.Writer) {
	w.engine.withStore(func(st Store) {
		w.end(st)
		d, err := w.look(st)
		if d.Refused == 0 {
			d.Refused = 1 // there may be room this very moment, but none was taken
		}
		writeDecision(out, d, err, w.millis)
	})
}

// leave ends the wait of a client that is gone.
func (w *wait) leave() {
	if w.parked.claim() {
		w.engine.withStore(w.end)
	}
}

// end stops the timers and gives up the place in the queue.
func (w *wait) end(st Store) {
	w.mu.Lock()
	w.over = true
	for _, stop := range w.stops {
		stop()
	}
	w.stops = nil
	w.mu.Unlock()
	st.Dequeue(w.ticket)
}

// replyDecision replies the five integers, or what went wrong.
func (c *Ctx) replyDecision(d limit.Decision, err error, millis bool) {
	c.fail = err != nil
	if err == nil {
		c.decided(c.Args[1], &d)
	}
	writeDecision(c.W, d, err, millis)
}

// writeDecision writes the five integers with times rounded up, or an error.
func writeDecision(w *resp.Writer, d limit.Decision, err error, millis bool) {
	switch {
	case err != nil:
		w.Error(storeError(err))
	case millis:
		w.FiveInts(d.Refused, d.Limit, d.Remaining, limit.MillisUp(d.RetryAfter), limit.MillisUp(d.ResetAfter))
	default:
		w.FiveInts(d.Refused, d.Limit, d.Remaining, limit.SecondsUp(d.RetryAfter), limit.SecondsUp(d.ResetAfter))
	}
}

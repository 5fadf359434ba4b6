package rules

import (
	"sync"
	"time"
)

// These are the parameters of a [Breaker].
const (
	failuresInRow = 5
	lastCalls     = 20
	failuresOf    = lastCalls / 2
	breakFor      = time.Second
	// spread is the maximum change of a pause, as a fraction of breakFor.
	spread = 0.2
)

// Pause returns how long a breaker stays open: 1 s with up to 20 % more or less. r is a random number in [0, 1).
func Pause(r float64) time.Duration {
	return time.Duration(float64(breakFor) * (1 - spread + 2*spread*r))
}

// State is the state of a [Breaker].
type State string

// These are the states. In the state half-open, the only probe is in progress.
const (
	Closed   State = "closed"
	Open     State = "open"
	HalfOpen State = "half-open"
)

// Breaker keeps calls from a server that does not answer. It opens after 5 failures in a row, or once half of the last 20
// calls have failed, counted since it was closed. While it is open there are no calls. After a [Pause] one
// call is the probe, and while that is under way there are no others. If the probe is answered, the breaker closes
// and forgets all outcomes; otherwise it opens again, from then on.
//
// The methods may be called concurrently. The zero value is closed and ready.
type Breaker struct {
	mu    sync.Mutex // mu guards all other fields
	state State      // the present state; "" stands for closed
	until time.Time  // the time after which there may be a probe, in the state open
	turn  uint64     // number of changes of the state, by which late outcomes are recognized
	row   int
	ring  [lastCalls]bool // whether each of the last calls has failed
	calls int             // number of calls in ring
	next  int             // index in ring of the next outcome
	bad   int             // number of calls in ring that have failed
}

// Ticket is the permission for one call.
type Ticket struct {
	// Allowed says that the call may be made. Probe says that the call is the probe.
	Allowed, Probe bool
	turn           uint64
}

// Outcome says how a call has ended.
type Outcome string

// These are the outcomes. Abandoned means that the caller has stopped to wait before the deadline: the call says nothing
// about the server, and if it was the probe, the next call is.
const (
	Answered  Outcome = "answered"
	Failed    Outcome = "failed"
	Abandoned Outcome = "abandoned"
)

// Begin says whether a call may be made at now. Each call that may is ended by [Breaker.End].
func (b *Breaker) Begin(now time.Time) Ticket {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.state {
	case HalfOpen:
		return Ticket{}
	case Open:
		if now.Before(b.until) {
			return Ticket{}
		}
		b.enter(HalfOpen)
		return Ticket{Allowed: true, Probe: true, turn: b.turn}
	case Closed:
	}
	return Ticket{Allowed: true, turn: b.turn}
}

// End tells the outcome of a call at now. pause is the time for which the breaker stays open if it opens. An outcome of
// a call that began before the breaker has opened or closed last counts no more. opened says that the breaker has
// opened.
func (b *Breaker) End(t Ticket, now time.Time, o Outcome, pause time.Duration) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !t.Allowed || t.turn != b.turn:
		return false
	case o == Abandoned:
		if t.Probe {
			b.enter(Open)
			b.until = now
		}
		return false
	case t.Probe && o == Answered:
		b.enter(Closed)
		return false
	case t.Probe, b.count(o == Failed):
		b.enter(Open)
		b.until = now.Add(pause)
		return true
	}
	return false
}

// State returns the present state of the breaker.
func (b *Breaker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == "" {
		return Closed
	}
	return b.state
}

func (b *Breaker) enter(s State) {
	b.state = s
	b.turn++
	b.row, b.calls, b.next, b.bad = 0, 0, 0, 0
}

// count adds an outcome and reports whether the breaker has to open.
func (b *Breaker) count(failed bool) bool {
	if b.calls == lastCalls {
		if b.ring[b.next] {
			b.bad--
		}
	} else {
		b.calls++
	}
	b.ring[b.next] = failed
	b.next = (b.next + 1) % lastCalls
	if !failed {
		b.row = 0
		return false
	}
	b.row++
	b.bad++
	return b.row >= failuresInRow || b.calls == lastCalls && b.bad >= failuresOf
}

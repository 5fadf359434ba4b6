package limiters

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/ratelimit"
)

// This file has the waits for room on a server whose asks a Remote decides.

// remoteWait is the additional state of a wait whose asks a Remote decides.
type remoteWait struct {
	gone  atomic.Bool // whether the client has disconnected
	one   sync.Mutex  // held during an attempt, so that only one runs at a time
	fresh bool        // whether no attempt has been made yet; guarded by one
	// timeout is the timeout of the call. It starts when the first attempt has found no room, so that no call is denied
	// before the store has decided. It is 0 once it has started, and if there is none. It is guarded by one.
	timeout time.Duration
}

// waitOnRemote enqueues the wait, parks the session and starts the first attempt. A Remote
// decides, so every attempt runs in the background.
func (w *wait) waitOnRemote(c *command.Call, timeout time.Duration) {
	w.remoteWait = &remoteWait{fresh: true, timeout: timeout}
	w.enqueue(c.Store)
	w.parked.Reclaimable = true
	w.parked.OnTimeout = w.giveUp
	w.parked.Cancel = func() {
		w.gone.Store(true)
		w.parked.Work(w.leave)
	}
	c.Park(w.parked)
	w.wake()
}

// waitOnStore parks the session of a call under several policies that waits until all of them pass, and whose state is
// in a store. It returns false if the call has an error; the call then fails with that error after a check for bans.
func (u *severalCall) waitOnStore(c *command.Call, d *ratelimit.Decider) bool {
	a := c.OwnAsk()
	if _, err := d.AskAll(u.parts, a); err != nil {
		return false
	}
	a.Millis, a.WithDetails = u.millis, u.withDetails
	all := d.WaitAll(u.parts)
	waitFor(c, a, u.MaxWait, counted{joint: d.JointStoreOf(u.parts, all), all: all, then: d.ConsequencesOf(u.parts)})
	return true
}

// noticed is the maximum time between two attempts of the first client in a queue if a Remote
// decides. Clients of another server may make room meanwhile, without waking the client.
const noticed = 100 * time.Millisecond

// decideOnRemote is decide for a server with a Remote. It cannot lock the keys, so other clients
// may take the room between its look and its charge. Then it releases its claim to the answer, and
// the wait continues.
func (w *wait) decideOnRemote(st env.Store) (now decide.Ask, over bool) {
	w.one.Lock()
	defer w.one.Unlock()
	continues := false
	defer func() {
		switch {
		case !continues:
			w.end(st)
		case w.timeout > 0:
			w.endAfter(st, w.timeout)
			w.timeout = 0
		}
	}()
	if now = w.own(); w.joint.FindBan(st, &now) {
		if continues = !w.parked.Claim(); continues {
			return now, false
		}
		w.bannedBy(st, &now)
		return now, true
	}
	first, passes, fresh := w.first(st), false, w.fresh
	w.fresh = false
	if !first || !fresh { // a refused try may change a state, so later attempts look before they try; the first attempt saves the look if the wait is first in its queues
		if first {
			now = w.look(st)
		} else {
			now, passes = w.lookBehind(st)
		}
		if !passes && !hopeless(&now) && (!first || now.Decision.Refused != 0) {
			continues = true
			w.lookAgain(st, first, &now)
			return now, false
		}
	}
	if !w.parked.Claim() {
		continues = true
		return now, false
	}
	if w.refusal = w.parked.Forbidden(st); w.refusal != "" {
		return now, true
	}
	if first && !hopeless(&now) {
		if now = w.try(st); now.Decision.Refused != 0 && !hopeless(&now) {
			continues = true
			w.lookAgain(st, true, &now)
			if w.parked.Unclaim(); w.gone.Load() {
				w.leave(st)
			}
			return now, false
		}
	}
	w.decided(st, &now)
	return now, true
}

// bannedBy concludes the wait of a call that a ban denies, with the decision or the error in now. The answer is claimed.
func (w *wait) bannedBy(st env.Store, now *decide.Ask) {
	if w.refusal = w.parked.Forbidden(st); w.refusal != "" || now.Err != nil {
		return
	}
	w.joint.CountBans(w.all)
	w.then = nil // a denial by a ban does not count towards the next ban
	w.decided(st, now)
}

// lookAgain starts the timer of the next attempt if first is true, which means that the wait is the
// first in its queues. Other waits are woken when they become the first.
func (w *wait) lookAgain(st env.Store, first bool, now *decide.Ask) {
	if first {
		w.tryAfter(st, min(noticed, now.Decision.RetryAfter))
	}
}

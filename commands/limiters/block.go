package limiters

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// wait is a client that waits for room under one or several keys, in the order of the ranks and of arrival. Only a
// client that is the first in the queues of all its keys has a timer for its next attempt, which
// fires when its call may pass. The other clients are woken when they become the first. If a Remote
// decides, the first client also looks for room repeatedly: see noticed.
type wait struct {
	parked  *command.Wait
	refs    []env.KeyRef // the keys for which the client waits
	tickets []any        // the places of the wait in the queues of refs, in the same order
	locks   []env.KeyRef // the keys that a decision may change: refs, and the keys of counted.all and counted.then; none with a Remote
	ask     decide.Ask   // the ask of the call, with its own copies of all bytes; only copies of it are decided
	counted

	refusal resp.Error // the error that ends the wait, if permissions or the role have changed; set by the goroutine that claimed the answer

	*remoteWait // the additional state if a Remote decides; otherwise nil

	due       atomic.Bool // an attempt was requested and has not looked at the keys yet
	mu        sync.Mutex
	concluded bool        // no further timer may start; guarded by mu
	bound     func() bool // stops the timer of the timeout; nil if there is none; guarded by mu
	nextTry   func() bool // stops the timer of the next attempt; nil if there is none; guarded by mu
}

// counted has the data that is needed, in addition to the ask, to count and answer a call that may
// wait. The zero value is for a call without a policy.
type counted struct {
	policy *policy.Counts        // the counters of the policy of the call; nil without a policy
	joint  *ratelimit.JointStore // the store that decides all asks of the call; nil for the store of the server
	all    *ratelimit.Waiting    // the call if it names several policies, and otherwise nil
	parts  []ratelimit.Part      // the parts of all, valid only while the call runs
	// then has the changes that follow from the decision, such as bans; nil if there are none.
	then *ratelimit.Consequences
}

// try decides a copy of the ask, which charges the call if there is room, and returns the copy. The
// keys have to be locked, or no other goroutine may decide for this wait at the same time.
func (w *wait) try(st env.Store) decide.Ask {
	a := w.own()
	decideApart(w.joint.Charging(st, w.all), w.parked.Client.Server, &a)
	a.Decision = a.Whole()
	if w.all != nil && a.Err == nil && !a.Refused {
		w.all.Charged(st.Now())
	}
	return a
}

// own returns a copy of the ask that shares no clauses with it, so that several copies may be
// decided at the same time.
func (w *wait) own() decide.Ask {
	a := w.ask
	a.Apart()
	return a
}

// look decides a copy of the ask without charging it, and returns the copy. The precondition of try
// holds for look, too.
func (w *wait) look(st env.Store) decide.Ask {
	a := w.own()
	switch a.Family {
	case decide.Window:
		a.Window.Charge, a.Window.Block = slidingwindow.Peek, false
	case decide.Bucket:
		a.Bucket.Charge = tokenbucket.Peek
	case decide.Lease:
		a.Lease.Peek, a.Lease.Block = true, false
	case decide.Several:
		for i := range a.Clauses {
			a.Clauses[i].Peek = true
		}
	}
	w.decideApart(st, &a)
	a.Decision = a.Whole()
	return a
}

// decideApart decides a without counting the decision.
func (w *wait) decideApart(st env.Store, a *decide.Ask) {
	decideApart(w.joint.On(st), w.parked.Client.Server, a)
}

// lookBehind is look for a call that is not the first in its queues. If the call is of a
// concurrency limiter and its member already holds a lease, the call needs no room: then lookBehind
// renews the lease and passes is true. It renews no lease while the server may change nothing,
// because it is paused or has become a replica.
func (w *wait) lookBehind(st env.Store) (now decide.Ask, passes bool) {
	now = w.look(st)
	mayChange := w.parked.Client.Server.Halts.Load()&command.HaltPaused == 0 && w.parked.Halted() == ""
	if w.ask.Family != decide.Lease || !mayChange || now.Err != nil || now.Decision.Refused != 0 {
		return now, false
	}
	renewal := w.own()
	renewal.Lease.Op, renewal.Lease.Block, renewal.Keep = concurrency.Renew, false, 0
	if w.decideApart(st, &renewal); renewal.Err != nil || renewal.Decision.Refused != 0 {
		return now, false
	}
	return w.look(st), true
}

// saysBlock reports whether BLOCK is among the arguments of a call.
func saysBlock(args [][]byte) bool {
	for _, word := range args[1:] {
		if arg.IsWord(word, "BLOCK") {
			return true
		}
	}
	return false
}

// waitFor replies to the call at once if a passes. If not, it parks the session until there is room
// or timeout has passed; a timeout of 0 means that there is none. A call that can never pass gets
// its reply at once, and so does a call for whose wait there is no memory. With a Remote, waitFor
// always parks the session, or fails if there is no memory.
//
// by has the data for counting the decision.
func waitFor(c *command.Call, a *decide.Ask, timeout time.Duration, by counted) {
	bytes := a.Bytes()
	kept := bytes + waitingCost(a)
	if by.all != nil {
		kept += by.all.Bytes()
	}
	kept += by.then.Bytes() + by.joint.Bytes()
	w := &wait{parked: c.NewWait(kept), ask: *a, counted: by}
	w.ask.Own(make([]byte, 0, bytes))
	w.parked.Args, w.ask.WithDetails = waitingArgs(c, w.ask.Key), a.WithDetails && namesPolicy(c)
	w.refs = []env.KeyRef{{DB: a.DB, Key: w.ask.Key}}
	if a.Family == decide.Several {
		w.refs = w.refs[:0]
		for i := range w.ask.Clauses {
			if key := w.ask.Clauses[i].Key; by.joint.Queues(key) {
				w.refs = append(w.refs, env.KeyRef{DB: a.DB, Key: key})
			}
		}
		w.ask.Key = w.ask.Clauses[0].Key // the statistics count the call under its first key
	}
	room := w.parked.Reserve()
	if c.Server.Options.Remote != nil {
		if !room {
			c.Fail(resp.ErrOOM) // the Remote decides on another goroutine, so the call cannot be decided without a wait
			return
		}
		w.waitOnRemote(c, timeout)
		return
	}
	w.locks = w.refs
	lock := func(key []byte) { w.locks = append(slices.Clip(w.locks), env.KeyRef{DB: a.DB, Key: key}) }
	if by.all != nil {
		by.all.Apart(lock)
	}
	by.then.Keys(lock)
	st := c.Store.(store)
	st.Lock(w.locks, nil)
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
		answerWaited(c, &now, by)
		return
	}
	if !room { // the call gets the reply of a timeout
		now.Decision.Refused = max(now.Decision.Refused, 1)
		answerWaited(c, &now, by)
		return
	}
	waits, w.parts = true, nil
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

// ticketCost is the memory, in bytes, of a place in the queue of a key, without the bytes of the
// key.
const ticketCost = 512

// waitingCost returns the bytes that a wait for room keeps, without the bytes that its ask owns:
// the places in the queues, each with a copy of the key, and the clauses of a.
func waitingCost(a *decide.Ask) (n int) {
	if a.Family != decide.Several {
		return len(a.Key) + ticketCost
	}
	for i := range a.Clauses {
		n += len(a.Clauses[i].Key) + 2*ticketCost
	}
	return n
}

// waitingArgs returns the arguments that a later check of permissions needs for a command that
// waits under key. They end with the key of the last policy if the command names policies, and
// otherwise have only key, at the index 1.
func waitingArgs(c *command.Call, key []byte) [][]byte {
	if last := c.Cmd.Keys.FirstDerived(c.Args); last > 0 {
		d := c.Cmd.Keys.Derived
		for at := last; at > 0; at = d.After(c.Args, at) {
			last = at
		}
		return command.CloneArgs(c.Args[:last+1])
	}
	return [][]byte{nil, key} // the command has a single key
}

// enqueue adds the wait to the queues of all its keys, and reports whether it is the first in
// each of them.
func (w *wait) enqueue(st env.Store) (first bool) {
	w.tickets, first = st.Enqueue(w.refs, w.ask.Rank, w.wake)
	return first
}

// first reports whether the wait is the first in the queues of all its keys.
func (w *wait) first(st env.Store) bool {
	for _, ticket := range w.tickets {
		if !st.First(ticket) {
			return false
		}
	}
	return true
}

func (w *wait) dequeue(st env.Store) {
	for _, ticket := range w.tickets {
		st.Dequeue(ticket)
	}
}

// wake starts an attempt in the background, unless an attempt was requested that has not looked at
// the keys yet.
func (w *wait) wake() {
	if !w.due.Swap(true) {
		w.parked.Work(w.attempt)
	}
}

// endAfter starts the timer of the timeout: after d the wait ends with a refusal. It does nothing if the wait has ended.
func (w *wait) endAfter(st env.Store, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.concluded {
		return
	}
	w.bound = st.AfterFunc(d, func() { w.parked.Interrupt(false) })
}

// tryAfter starts a timer that wakes w after d. It replaces the timer of an earlier tryAfter. It
// does nothing if the wait has ended.
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

// retryAfter returns the time after which there may be room. now is a refused copy of the ask. The
// result is the time that the decision gives, or the time until a reservation ends or one of the keys
// expires if that is shorter: EXPIRE may have moved the expiry to before the instant that the limiter
// computes.
func (w *wait) retryAfter(st store, now *decide.Ask) time.Duration {
	after := now.Decision.RetryAfter
	if now.Ends > 0 {
		after = min(after, now.Ends)
	}
	for _, ref := range w.refs {
		if at, has, _ := st.Expiry(ref.DB, ref.Key); has {
			after = min(after, at.Sub(st.Now()))
		}
	}
	return after
}

// hopeless reports whether now, a decided ask, has an error or a refusal that waiting does not
// change.
func hopeless(now *decide.Ask) bool {
	return now.Err != nil || now.Decision.Refused != 0 && now.Decision.RetryAfter == limit.NoRetry
}

// attempt decides the call if it is the first in its queues, and replies if the call passes or can
// never pass. During CLIENT PAUSE it only arranges that resume is called at the end of the pause.
// It replies after the locks are released. By then the effect is in the journal, so the session,
// which may run again at once, waits for that record.
func (w *wait) attempt(st env.Store) {
	if w.parked.Client.Server.Host.Pauses.AfterPause(w.resume) {
		return // due remains set, so that no other attempt starts before resume
	}
	w.due.Store(false)
	decideOn := w.decide
	if w.parked.Client.Server.Options.Remote != nil {
		decideOn = w.decideOnRemote
	}
	now, over := decideOn(st)
	if !over {
		return
	}
	w.parked.Answer(func(out *resp.Writer) { w.answer(out, &now) })
}

// decided records the decision in now as the result of the wait, and makes the changes that follow
// from it, unless now has an error. The caller holds the locks of the wait, or none if a Remote
// decides.
func (w *wait) decided(st env.Store, now *decide.Ask) {
	if now.Err == nil {
		w.then.Follow(w.joint.On(st), now, st.Now())
		w.parked.Decided = &command.Decided{Key: now.Key, Decision: now.Decision, Counter: w.counter(now)}
	}
}

// answer writes the reply of a wait that has ended: w.refusal if there is one, or else the decision
// or the error in now.
func (w *wait) answer(out *resp.Writer, now *decide.Ask) {
	switch {
	case w.refusal != "":
		out.Error(w.refusal)
	case now.Err == nil:
		w.write(out, now)
	case errors.Is(now.Err, limit.ErrNotKept):
		out.Error(command.Misconf(w.parked.Client.Server.Options.Persistence.Fault()))
	default:
		out.Error(command.StoreError(now.Err))
	}
}

// decide makes an attempt under the locks of the keys, and reports whether the wait is over. If it
// is, decide has claimed the answer and returns the decision. It looks for room before it claims,
// so that a timeout or an unblock in between can still claim the answer. It charges only after the
// claim, so that every charge has an answer.
func (w *wait) decide(on env.Store) (now decide.Ask, over bool) {
	st := on.(store)
	st.Lock(w.locks, nil)
	defer st.Unlock()
	continues := false
	defer func() {
		if !continues { // the deferred function runs also if the decision panics
			w.end(st) // end runs before the client can get the answer
		}
	}()
	if !w.first(st) {
		continues = true
		return now, false
	}
	now = w.look(st)
	if now.Decision.Refused != 0 && !hopeless(&now) {
		continues = true
		w.tryAfter(st, w.retryAfter(st, &now))
		return now, false
	}
	if !w.parked.Claim() {
		continues = true // another goroutine has claimed the answer, so it ends the wait
		return now, false
	}
	if w.refusal = w.parked.Forbidden(st); w.refusal == "" {
		w.refusal = w.parked.Halted()
	}
	if w.refusal != "" {
		return now, true
	}
	now = w.try(st)
	w.decided(st, &now)
	return now, true
}

// resume makes the attempt that a pause has postponed, if resumed is true. If it is false, the
// server is stopping and ends all waits itself.
func (w *wait) resume(resumed bool) {
	if resumed {
		w.parked.Work(w.attempt)
	}
}

// giveUp ends the wait after a timeout or an unblock, and writes the reply to out: a refusal,
// unless the call has renewed a lease, or the error if the user may no longer call the command.
func (w *wait) giveUp(st env.Store, out *resp.Writer) {
	defer w.end(st) // end runs last: the next call in the queue may pass then, and the reply must not include its charge
	if w.refusal = w.parked.Forbidden(st); w.refusal != "" {
		out.Error(w.refusal)
		return
	}
	now, passes := w.lookBehind(st)
	if !passes && now.Decision.Refused == 0 {
		now.Decision.Refused = 1 // there may be room now, but the call was not charged
	}
	w.decided(st, &now)
	w.answer(out, &now)
}

// leave ends the wait of a client that has disconnected. It does nothing if another goroutine has
// claimed the answer.
func (w *wait) leave(st env.Store) {
	if w.parked.Claim() {
		w.end(st)
	}
}

// end stops the timers of the wait, prevents new ones, and removes the wait from the queues.
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

// answerWaited replies at once to a call with BLOCK, with the decision on a or its error. It also
// counts the decision, in the statistics and in the counters of by.
func answerWaited(c *command.Call, a *decide.Ask, by counted) {
	c.Conclude(a, func(c *command.Call, a *decide.Ask) {
		by.then.Follow(c.Store, a, c.Store.Now())
		if by.all == nil {
			record(c, a, &a.Decision, by.policy)
		} else {
			by.record(c, a)
		}
		by.write(c.W, a)
	})
}

// record counts the decision on a, the ask of a call under several policies.
func (by *counted) record(c *command.Call, a *decide.Ask) {
	if a.Decision.Refused != 0 {
		c.Denied++
	}
	by.all.Conclude(a)
	by.all.Answered(a.Decision.Refused != 0)
	command.Scratch[scratch](c).decider.NoteWaiting(by.parts, by.all, a)
}

// write writes the reply to a call with BLOCK. a is its decided ask.
func (by *counted) write(out *resp.Writer, a *decide.Ask) {
	if by.all == nil {
		writeWaited(out, a, &a.Decision)
		return
	}
	writeParts(out, &a.Decision, by.all.Parts, a.WithDetails, a.Millis)
}

// counter returns the counter for the decision on a in the policies of the call; nil if there is
// none.
func (by *counted) counter(a *decide.Ask) interface{ Answered(denied bool) } {
	if by.all == nil {
		return counter(by.policy)
	}
	by.all.Conclude(a)
	return by.all
}

// record counts d, the decision on a as a whole, in the statistics of keys and, if counts is not
// nil, in counts. A refusal also counts as a denied call of the command.
func record(c *command.Call, a *decide.Ask, d *limit.Decision, counts *policy.Counts) {
	if d.Refused != 0 {
		c.Denied++
	}
	command.Scratch[scratch](c).decider.Record(caller{c}, a, d, counts, namesPolicy(c))
}

// answerFive counts the decision on a and replies with its five integers.
func answerFive(c *command.Call, a *decide.Ask) {
	decided(c, a)
	writeDecision(c.W, &a.Decision, a.Millis)
}

// decided counts the decision on a, which has one key and no policy. It does less work than record,
// since the most frequent commands call it.
func decided(c *command.Call, a *decide.Ask) {
	if a.Decision.Refused != 0 {
		c.Denied++
	}
	command.Scratch[scratch](c).recorder.Note(caller{c}, a, a.Key, &a.Decision)
}

// counter returns n as the Counter of a [command.Decided]. For a nil n it returns a nil interface.
func counter(n *policy.Counts) interface{ Answered(denied bool) } {
	if n == nil {
		return nil
	}
	return n
}

package limiters

import (
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/tokenbucket"
)

func tokenBucketCommands() []*command.Command {
	return []*command.Command{{
		Name: "tb.acquire", Arity: -5, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast | command.FlagDecides, Keys: command.OneKey,
		Categories: command.CatRateLimit, Group: "ratelimit",
		Summary: "Takes quantity tokens from a bucket, or reserves them.",
		Syntax: "key capacity count period [quantity] [GREEDY | INTERVAL | LEAKY | <WARMUP duration [COLD factor]>] " +
			"[INIT tokens] [DEBT] [WAIT max | BLOCK timeout] [MS] [PEEK | PARTIAL | FORCE]",
		Since: "1.0.0", Complexity: "O(1)", Reply: fiveReply, Parse: askAcquire, Answer: answerAcquire, Waits: acquireWaits,
	}}
}

func askAcquire(c *command.Call) resp.Error {
	a := c.NewAsk(decide.Bucket, c.Args[1])
	err := clause.Acquire(c.Args[1:], &a.Bucket)
	a.Millis = a.Bucket.Millis
	if a.Bucket.Block && !c.MayWait() {
		a.Bucket.MaxWait, a.Bucket.Block = 0, false // as WAIT 0
	}
	return c.WithUsage(err)
}

// acquireWaits is the field Waits of TB.ACQUIRE.
func acquireWaits(_ *command.Server, args [][]byte) bool {
	var call tokenbucket.Call
	return saysBlock(args) && clause.Acquire(args[1:], &call) == "" && call.Block
}

// answerAcquire replies, or parks the caller of a reservation until its tokens are available.
func answerAcquire(c *command.Call, a *decide.Ask) {
	if grantsLater(a) {
		serveOut(c, a)
		return
	}
	answerFive(c, a)
}

// grantsLater reports whether the bucket has granted tokens that become available later, to a
// call with BLOCK.
func grantsLater(a *decide.Ask) bool {
	return a.Bucket.Block && a.Decision.Refused == 0 && a.Decision.RetryAfter > 0
}

// reservation is a granted TB.ACQUIRE whose caller waits until its tokens are available. The
// units are charged already. If the caller disconnects, they are returned.
type reservation struct {
	parked *command.Wait
	ask    decide.Ask  // owns its bytes; its answer is the grant
	stop   func() bool // stops the timer
	policy *policy.Counts
}

// serveOut parks the caller of a reservation.
func serveOut(c *command.Call, a *decide.Ask) {
	kept := a.Bytes()
	r := &reservation{parked: c.NewWait(kept), ask: *a, policy: countedBy(c)}
	r.ask.Own(make([]byte, 0, kept))
	r.parked.Args, r.ask.WithDetails = waitingArgs(c, r.ask.Key), a.WithDetails && namesPolicy(c)
	if !r.parked.Reserve() { // answered as if CLIENT UNBLOCK had ended the wait
		giveBack(c.Store, a)
		noteDecided(c, a, &limit.Decision{Refused: 1, RetryAfter: limit.NoRetry})
		r.answer(c.Store, c.W, 1)
		return
	}
	r.stop = c.Store.AfterFunc(a.Decision.RetryAfter, func() { r.parked.Work(r.serve) })
	r.parked.OnTimeout = r.giveUp
	r.parked.Cancel = func() {
		if r.parked.Claim() {
			r.parked.Work(r.undo)
		}
	}
	c.Park(r.parked)
}

// serve replies that the tokens are available. If the user has lost the permission meanwhile, it
// returns them and replies with the error.
func (r *reservation) serve(st env.Store) {
	r.parked.Finish(func(w *resp.Writer) {
		if err := r.parked.Forbidden(st); err != "" {
			r.undo(st)
			w.Error(err)
			return
		}
		r.parked.Decided = &command.Decided{Key: r.ask.Key, Decision: r.ask.Decision, Counter: counter(r.policy)}
		r.answer(st, w, 0)
	})
}

// giveUp replies to a caller whose wait was ended before its tokens were available.
func (r *reservation) giveUp(st env.Store, w *resp.Writer) {
	r.undo(st)
	if err := r.parked.Forbidden(st); err != "" {
		w.Error(err)
		return
	}
	r.parked.Decided = &command.Decided{Key: r.ask.Key, Decision: limit.Decision{Refused: 1, RetryAfter: limit.NoRetry}, Counter: counter(r.policy)}
	r.answer(st, w, 1)
}

// undo returns the units, after a pause if there is one, because nothing may change during a
// handover.
func (r *reservation) undo(st env.Store) {
	r.stop()
	later := func(resumed bool) {
		if resumed {
			r.parked.Work(r.refund)
		}
	}
	if !r.parked.Client.Server.Host.AfterPause(later) {
		r.refund(st)
	}
}

// refund returns the units, unless the server has become a replica. Then the primary has the
// charge and does not know the caller.
func (r *reservation) refund(st env.Store) {
	if r.parked.Client.Server.Halts.Load()&command.HaltReadOnly != 0 {
		return
	}
	giveBack(st, &r.ask)
}

// giveBack returns the units of a grant.
func giveBack(st env.Store, grant *decide.Ask) {
	a := *grant
	a.Family = decide.Cancel
	st.Decide(&a)
}

// answer writes the current state of the bucket. If the key has another type by now, it writes
// the state at the time of the reservation, since the grant remains valid.
func (r *reservation) answer(st env.Store, w *resp.Writer, refused int64) {
	look := r.ask
	look.Bucket.Block, look.Bucket.MaxWait = false, 0
	if refused == 0 {
		look.Bucket.Quantity = 0
	} else {
		look.Bucket.Charge = tokenbucket.Peek
	}
	st.Decide(&look)
	d := look.Decision
	if look.Err != nil {
		d = r.ask.Decision
		d.RetryAfter = limit.NoRetry
	}
	d.Refused = refused
	if refused == 0 {
		d.RetryAfter = limit.NoRetry
	}
	writeUse(w, &look, &d)
}

package limiters

import (
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/tokenbucket"
)

func tokenBucketCommands() []*command.Command {
	return []*command.Command{{
		Name: "tb.acquire", Arity: -5, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast | command.FlagDecides, Keys: command.OneKey,
		Categories: command.CatRateLimit, Group: "ratelimit",
		Summary: "Takes quantity tokens from a bucket, or reserves them.",
		Syntax: "key capacity count period [quantity] [GREEDY | INTERVAL | LEAKY | <WARMUP duration [COLD factor]>] " +
			"[INIT tokens] [DEBT] [PENALIZE] [KEEP <units | share%>] [WAIT max | BLOCK timeout] [MS] [PEEK | PARTIAL | FORCE] [ID token | RESERVE id ttl]",
		Since: "1.0.0", Complexity: "O(1)", Reply: fiveReply, Run: acquire, Parse: askAcquire, Answer: answerAcquire, Waits: acquireWaits,
		Queues: acquireQueues,
	}}
}

func askAcquire(c *command.Call) resp.Error {
	a := c.NewAsk(decide.Bucket, c.Args[1])
	var o clause.CallOptions
	err := clause.Acquire(c.Args[1:], &a.Bucket, &o)
	a.Millis = a.Bucket.Millis
	if a.Bucket.Block && !c.MayWait() {
		a.Bucket.MaxWait, a.Bucket.Block = 0, false // the call is decided as one with WAIT 0
	}
	if err == "" {
		err = complete(c, a, &o, a.Bucket.Capacity)
	}
	return c.WithUsage(err)
}

// acquire is the Run function of TB.ACQUIRE. A call with BLOCK takes its tokens in advance. With KEEP it waits for room
// instead, because tokens taken in advance could be among those that KEEP leaves for other calls.
func acquire(c *command.Call) {
	if err := askAcquire(c); err != "" {
		c.Fail(err)
		return
	}
	a := c.OwnAsk()
	if b := &a.Bucket; queues(b, a.Keep > 0) {
		timeout := b.MaxWait
		if timeout == tokenbucket.NoLimit {
			timeout = 0
		}
		b.Block, b.Waits, b.MaxWait = false, false, 0
		waitFor(c, a, timeout, counted{})
		return
	}
	if c.Store.Decide(a); a.Err != nil {
		c.Fail(command.StoreError(a.Err))
		return
	}
	answerAcquire(c, a)
}

// acquireWaits is the Waits function of TB.ACQUIRE. It reports whether the arguments are valid and
// contain BLOCK.
func acquireWaits(_ *command.Server, args [][]byte) bool {
	var call tokenbucket.Call
	return saysBlock(args) && clause.Acquire(args[1:], &call, nil) == "" && call.Block
}

// acquireQueues is the Queues function of TB.ACQUIRE. It reports whether the arguments are valid and the call waits in
// the queue of its key, as a call with BLOCK and KEEP does.
func acquireQueues(_ *command.Server, args [][]byte) bool {
	var (
		call tokenbucket.Call
		o    clause.CallOptions
	)
	return saysBlock(args) && clause.Acquire(args[1:], &call, &o) == "" && queues(&call, !o.Keep.None())
}

// queues reports whether the call b waits in the queue of its key. keeps says whether the call has KEEP.
func queues(b *tokenbucket.Call, keeps bool) bool { return b.Block && keeps && b.Quantity > 0 }

// answerAcquire replies with the decision on a. If a has BLOCK and its tokens become available
// later, it parks the client until then instead.
func answerAcquire(c *command.Call, a *decide.Ask) {
	if grantsLater(a) {
		serveOut(c, a, counted{}, nil)
		return
	}
	answerFive(c, a)
}

// grantsLater reports whether a is a call with BLOCK that was granted tokens which become available
// later.
func grantsLater(a *decide.Ask) bool {
	return a.Bucket.Block && a.Decision.Refused == 0 && a.Decision.RetryAfter > 0
}

// laterGrant is a granted TB.ACQUIRE whose client waits until its tokens are available. The bucket
// is charged already. If the client disconnects before that, the tokens are returned to the bucket.
type laterGrant struct {
	parked *command.Wait
	ask    decide.Ask  // the ask, whose answer is the grant, with its own copies of all bytes
	stop   func() bool // stops the timer that ends the wait
	counted
}

// serveOut parks the client of c until the tokens that a has reserved are available. If there is no
// memory for that, it returns the tokens and replies with a refusal, as after CLIENT UNBLOCK. by
// counts the decision. args are the arguments from waitingArgs if those of the call are no longer
// valid, and otherwise nil.
func serveOut(c *command.Call, a *decide.Ask, by counted, args [][]byte) {
	kept := a.Bytes()
	r := &laterGrant{parked: c.NewWait(kept + by.joint.Bytes()), ask: *a, counted: by}
	r.ask.Own(make([]byte, 0, kept))
	if r.parked.Args, r.ask.WithDetails = args, a.WithDetails && namesPolicy(c); args == nil {
		r.parked.Args = waitingArgs(c, r.ask.Key)
	}
	if !r.parked.Reserve() { // without memory, the client gets the reply as after CLIENT UNBLOCK
		giveBack(by.joint.On(c.Store), c.Server, a)
		record(c, a, &limit.Decision{Refused: 1, RetryAfter: limit.NoRetry}, by.policy)
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

// serve replies that the tokens are available. If the user may no longer call the command, serve
// returns the tokens and replies with the error.
func (r *laterGrant) serve(st env.Store) {
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

// giveUp ends a wait before its tokens are available. It returns the tokens and writes a refusal to
// w, or the error if the user may no longer call the command.
func (r *laterGrant) giveUp(st env.Store, w *resp.Writer) {
	r.undo(st)
	if err := r.parked.Forbidden(st); err != "" {
		w.Error(err)
		return
	}
	r.parked.Decided = &command.Decided{Key: r.ask.Key, Decision: limit.Decision{Refused: 1, RetryAfter: limit.NoRetry}, Counter: counter(r.policy)}
	r.answer(st, w, 1)
}

// undo stops the timer and returns the tokens to the bucket. During a pause it returns them after
// the pause, because nothing may change during a handover.
func (r *laterGrant) undo(st env.Store) {
	r.stop()
	later := func(resumed bool) {
		if resumed {
			r.parked.Work(r.refund)
		}
	}
	if !r.parked.Client.Server.Host.Pauses.AfterPause(later) {
		r.refund(st)
	}
}

// refund returns the tokens to the bucket, unless the server has become a replica. In that case the
// new primary has the charge, and does not know about the wait.
func (r *laterGrant) refund(st env.Store) {
	if r.parked.Client.Server.Halts.Load()&command.HaltReadOnly != 0 {
		return
	}
	giveBack(r.joint.On(st), r.parked.Client.Server, &r.ask)
}

// giveBack returns to the bucket the tokens that grant, a granted ask, has reserved. s is the server
// of its client.
func giveBack(st ratelimit.Store, s *command.Server, grant *decide.Ask) {
	a := *grant
	a.Family = decide.Cancel
	decideApart(st, s, &a)
}

// answer writes the current state of the bucket to w, with refused (0 or 1) as the first integer.
// If the state cannot be read, for example because the key has another type by now, answer writes
// the state at the time of the reservation: a grant remains valid, and a refusal has no newer state.
func (r *laterGrant) answer(st env.Store, w *resp.Writer, refused int64) {
	look := r.ask
	look.Bucket.Block, look.Bucket.MaxWait = false, 0
	if refused == 0 {
		look.Bucket.Quantity = 0
	} else {
		look.Bucket.Charge = tokenbucket.Peek
	}
	decideApart(r.joint.On(st), r.parked.Client.Server, &look)
	d := look.Decision
	if look.Err != nil {
		d = r.ask.Decision
		d.RetryAfter = limit.NoRetry
	}
	d.Refused = refused
	if refused == 0 {
		d.RetryAfter = limit.NoRetry
	}
	writeWaited(w, &look, &d)
}

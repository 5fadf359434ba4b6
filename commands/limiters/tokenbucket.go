package limiters

import (
	"bytes"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/tokenbucket"
)

func tokenBucketCommands() []*command.Command {
	return []*command.Command{{
		Name: "tb.acquire", Arity: -5, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast, Keys: command.OneKey,
		Categories: command.CatRateLimit, Group: "ratelimit",
		Summary: "Takes quantity tokens from a bucket, or reserves them.",
		Syntax: "key capacity count period [quantity] [GREEDY | INTERVAL | LEAKY | <WARMUP duration [COLD factor]>] " +
			"[INIT tokens] [DEBT] [WAIT max | BLOCK timeout] [MS] [PEEK | PARTIAL | FORCE]",
		Since: "1.0.0", Complexity: "O(1)", Reply: fiveReply, Run: acquire,
	}}
}

// acquire is TB.ACQUIRE.
func acquire(c *command.Call) {
	call := &command.Scratch[scratch](c).bucket
	if err := parseAcquire(c.Args[1:], call); err != "" {
		c.Fail(err)
		return
	}
	waits := call.Block && c.MayWait()
	if call.Block && !waits {
		call.MaxWait = 0 // as WAIT 0
	}
	d, err := c.Store.Acquire(c.Client.Selected(), c.Args[1], call)
	if waits && err == nil && d.Refused == 0 && d.RetryAfter > 0 {
		decided(c, c.Args[1], &d)
		serveOut(c, d, call)
		return
	}
	replyDecision(c, d, err, call.Millis)
}

// reservation is a granted TB.ACQUIRE whose caller waits until its tokens are
// there. The units are charged already; a caller that goes away gives them back.
type reservation struct {
	parked  *command.Wait
	db      int
	key     []byte
	call    tokenbucket.Call
	granted limit.Decision
	stop    func() bool // the timer
}

// serveOut keeps the caller of a granted reservation waiting.
func serveOut(c *command.Call, d limit.Decision, call *tokenbucket.Call) {
	r := &reservation{parked: c.NewWait(), db: c.Client.Selected(), key: bytes.Clone(c.Args[1]), call: *call, granted: d}
	r.stop = c.Store.AfterFunc(d.RetryAfter, func() { r.parked.Work(r.serve) })
	r.parked.OnTimeout = r.giveUp
	r.parked.Cancel = func() {
		if r.parked.Claim() {
			r.parked.Work(r.undo)
		}
	}
	c.Park(r.parked)
}

// serve tells the caller that its tokens are there.
func (r *reservation) serve(st command.Store) {
	r.parked.Finish(func(w *resp.Writer) { r.answer(st, w, 0) })
}

// giveUp is the answer of a caller that is made to stop waiting.
func (r *reservation) giveUp(st command.Store, w *resp.Writer) {
	r.undo(st)
	r.parked.Refused = r.key
	r.answer(st, w, 1)
}

func (r *reservation) undo(st command.Store) {
	r.stop()
	st.CancelAcquire(r.db, r.key, &r.call)
}

// answer writes what the bucket shows now. Should something else lie under the key
// by now, it is what the bucket showed when the reservation was made: the grant
// stands.
func (r *reservation) answer(st command.Store, w *resp.Writer, refused int64) {
	look := r.call
	look.Block, look.MaxWait = false, 0
	if refused == 0 {
		look.Quantity = 0
	} else {
		look.Charge = tokenbucket.Peek
	}
	d, err := st.Acquire(r.db, r.key, &look)
	if err != nil {
		d = r.granted
		d.RetryAfter = limit.NoRetry
	}
	d.Refused = refused
	if refused == 0 {
		d.RetryAfter = limit.NoRetry
	}
	writeDecision(w, d, nil, r.call.Millis)
}

package commands

import (
	"bytes"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/tokenbucket"
)

func tokenBucketCommands() []*Command {
	return []*Command{{
		Name: "tb.acquire", Arity: -5, Flags: FlagWrite | FlagDenyOOM | FlagFast, Keys: oneKey,
		Categories: CatRateLimit, Group: "ratelimit",
		Summary: "Takes quantity tokens from a bucket, or reserves them.",
		Syntax: "key capacity count period [quantity] [GREEDY | INTERVAL | LEAKY | <WARMUP duration [COLD factor]>] " +
			"[INIT tokens] [DEBT] [WAIT max | BLOCK timeout] [MS] [PEEK | PARTIAL | FORCE]",
		Since: "1.0.0", Complexity: "O(1)", Reply: fiveReply, Run: acquire,
	}}
}

// acquire is TB.ACQUIRE.
func acquire(c *Ctx) {
	call := &laneOf(c.Worker).bucket
	if err := parseAcquire(c.Args[1:], call); err != "" {
		c.Fail(err)
		return
	}
	waits := call.Block && c.mayWait()
	if call.Block && !waits {
		call.MaxWait = 0 // as WAIT 0
	}
	d, err := c.Store.Acquire(c.Client.selected(), c.Args[1], call)
	if waits && err == nil && d.Refused == 0 && d.RetryAfter > 0 {
		c.decided(c.Args[1], &d)
		c.serveOut(d, call)
		return
	}
	c.replyDecision(d, err, call.Millis)
}

// reservation is a granted TB.ACQUIRE whose caller waits until its tokens are
// there. The units are charged already; a caller that goes away gives them back.
type reservation struct {
	parked  *Parked
	db      int
	key     []byte
	call    tokenbucket.Call
	granted limit.Decision
	stop    func() bool // the timer
}

// serveOut keeps the caller of a granted reservation waiting.
func (c *Ctx) serveOut(d limit.Decision, call *tokenbucket.Call) {
	r := &reservation{parked: c.parking(), db: c.Client.selected(), key: bytes.Clone(c.Args[1]), call: *call, granted: d}
	r.stop = c.Store.AfterFunc(d.RetryAfter, func() { r.parked.work(r.serve) })
	r.parked.giveUp = r.giveUp
	r.parked.cancel = func() {
		if r.parked.claim() {
			r.parked.work(r.undo)
		}
	}
	c.Park(r.parked)
}

// serve tells the caller that its tokens are there.
func (r *reservation) serve(st Store) {
	r.parked.Finish(func(w *resp.Writer) { r.answer(st, w, 0) })
}

// giveUp is the answer of a caller that is made to stop waiting.
func (r *reservation) giveUp(st Store, w *resp.Writer) {
	r.undo(st)
	r.parked.refused = r.key
	r.answer(st, w, 1)
}

func (r *reservation) undo(st Store) {
	r.stop()
	st.CancelAcquire(r.db, r.key, &r.call)
}

// answer writes what the bucket shows now. Should something else lie under the key
// by now, it is what the bucket showed when the reservation was made: the grant
// stands.
func (r *reservation) answer(st Store, w *resp.Writer, refused int64) {
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

package commands

import (
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
	call := &c.bucket
	if err := parseAcquire(c.Args[1:], call); err != "" {
		c.Fail(err)
		return
	}
	if call.Block && c.S.exclusive {
		call.MaxWait = 0 // as WAIT 0
	}
	d, err := c.Store.Acquire(c.S.selected(), c.Args[1], call)
	if call.Block && !c.S.exclusive && err == nil && d.Refused == 0 && d.RetryAfter > 0 {
		c.decided(c.Args[1], &d)
		c.serveOut(d, *call)
		return
	}
	c.replyDecision(d, err, call.Millis)
}

// serveOut keeps the caller of a granted reservation waiting until its tokens are
// there. The units are charged already; a caller that goes away gives them back.
func (c *Ctx) serveOut(d limit.Decision, call tokenbucket.Call) {
	e, db, key := c.engine, c.S.selected(), append([]byte(nil), c.Args[1]...)
	status := call
	status.Quantity = 0
	p := c.Park()
	stop := c.Store.AfterFunc(d.RetryAfter, func() {
		e.spawn(func() {
			e.withStore(func(st Store) {
				p.Finish(func(w *resp.Writer) {
					now, err := st.Acquire(db, key, &status)
					now.Refused, now.RetryAfter = 0, limit.NoRetry
					writeDecision(w, now, err, call.Millis)
				})
			})
		})
	})
	cancel := func(st Store) {
		stop()
		st.CancelAcquire(db, key, &call)
	}
	p.cancel = func() {
		e.spawn(func() {
			if p.claim() {
				e.withStore(cancel)
			}
		})
	}
	p.giveUp = func(w *resp.Writer) {
		e.withStore(func(st Store) {
			cancel(st)
			peek := call
			peek.Charge, peek.MaxWait = tokenbucket.Peek, 0
			now, err := st.Acquire(db, key, &peek)
			if now.Refused == 0 {
				now.Refused = 1
			}
			writeDecision(w, now, err, call.Millis)
		})
	}
}

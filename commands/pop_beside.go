package commands

import (
	"slices"
	"time"
)

// waitBeside is [Ctx.popOrWait] for a call that would hold up its loop: it waits at once,
// and a goroutine joins the queues for it and serves it what there is already.
func (c *Ctx) waitBeside(call popCall, keys [][]byte, timeout time.Duration) {
	w := c.newPopWait(call, keys)
	if w == nil {
		return
	}
	c.parkPop(w, timeout)
	refs := make([]KeyRef, len(w.keys))
	for i, key := range w.keys {
		refs[i] = KeyRef{DB: w.db, Key: key}
	}
	engineOf(c.server).serveKeys(refs, func(c *Ctx) {
		w.join(c.Store)
		if slices.ContainsFunc(w.keys, func(key []byte) bool { return c.Store.Exists(w.db, key) }) {
			c.serveOne(w, w.db, nil)
		}
	})
}

// serveBeside serves a key that has changed where nobody could.
func (e *Engine) serveBeside(db int, key string) {
	ref := []KeyRef{{DB: db, Key: []byte(key)}}
	e.serveKeys(ref, func(c *Ctx) { c.Store.MarkReady(db, ref[0].Key) })
}

// serveKeys runs f with refs held on a goroutine, and serves those whom it makes ready.
func (e *Engine) serveKeys(refs []KeyRef, f func(c *Ctx)) {
	serve := func(l *Lane) {
		again := func(goOn bool) {
			if goOn {
				e.serveKeys(refs, f)
			}
		}
		if e.behindPause(again) {
			return
		}
		c := &Ctx{Worker: &l.Worker}
		c.hold(refs, nil)
		f(c)
		c.serve()
		c.Store.Release()
		c.answerServed()
	}
	e.Spawn(func() {
		if len(refs) > 1 {
			e.besideSlots <- struct{}{}
			defer func() { <-e.besideSlots }()
		}
		e.withLane(0, serve)
	})
}

package commands

import (
	"slices"
	"time"

	"github.com/cellserver/cellserver/commands/command"
)

// waitBeside is [Ctx.popOrWait] for a call that would hold up its loop: it waits at once,
// and a goroutine joins the queues for it and serves it what there is already.
func waitBeside(c *command.Call, call popCall, keys [][]byte, timeout time.Duration) {
	w := newPopWait(c, call, keys)
	if w == nil {
		return
	}
	parkPop(c, w, timeout)
	refs := make([]command.KeyRef, len(w.keys))
	for i, key := range w.keys {
		refs[i] = command.KeyRef{DB: w.db, Key: key}
	}
	engineOf(c.Server).serveKeys(refs, func(c *command.Call) {
		w.join(c.Store)
		if slices.ContainsFunc(w.keys, func(key []byte) bool { return c.Store.Exists(w.db, key) }) {
			serveOne(c, w, w.db, nil)
		}
	})
}

// serveBeside serves a key that has changed where nobody could.
func (e *Engine) serveBeside(db int, key string) {
	ref := []command.KeyRef{{DB: db, Key: []byte(key)}}
	e.serveKeys(ref, func(c *command.Call) { c.Store.MarkReady(db, ref[0].Key) })
}

// serveKeys runs f with refs held on a goroutine, and serves those whom it makes ready.
func (e *Engine) serveKeys(refs []command.KeyRef, f func(c *command.Call)) {
	serve := func(l *Lane) {
		again := func(goOn bool) {
			if goOn {
				e.serveKeys(refs, f)
			}
		}
		if e.AfterPause(again) {
			return
		}
		c := &command.Call{Worker: &l.Worker}
		hold(c, refs, nil)
		f(c)
		serve(c)
		c.Store.Release()
		answerServed(c)
	}
	e.Spawn(func() {
		if len(refs) > 1 {
			e.besideSlots <- struct{}{}
			defer func() { <-e.besideSlots }()
		}
		e.withLane(0, serve)
	})
}

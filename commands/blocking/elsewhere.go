package blocking

import (
	"slices"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
)

// waitElsewhere is PopOrWait for a call that would delay its loop. The session is parked at once,
// and a goroutine joins the queues and serves elements that are there already.
func waitElsewhere(c *command.Call, call Call, keys [][]byte, timeout time.Duration) {
	w := newPopWait(c, call, keys)
	if w == nil {
		return
	}
	parkPop(c, w, timeout)
	refs := make([]env.KeyRef, len(w.keys))
	for i, key := range w.keys {
		refs[i] = env.KeyRef{DB: w.db, Key: key}
	}
	w.all.serveKeys(refs, func(c *command.Call) {
		w.join(c.Store)
		if slices.ContainsFunc(w.keys, func(key []byte) bool { return c.Store.Exists(w.db, key) }) {
			w.all.serveOne(c, w, w.db)
		}
	})
}

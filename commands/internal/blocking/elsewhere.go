package blocking

import (
	"slices"
	"time"

	"github.com/cellserver/cellserver/env"
)

// waitElsewhere is PopOrWait for a call with too much work for its event loop. It parks the session
// at once. Another goroutine then adds the client to the queues of keys, and serves it if a key has
// elements already.
func waitElsewhere(c StoreCall, call Call, keys [][]byte, timeout time.Duration) {
	w := newPopWait(c, call, keys)
	if w == nil {
		return
	}
	parkPop(c, w, timeout)
	refs := make([]env.KeyRef, len(w.keys))
	for i, key := range w.keys {
		refs[i] = env.KeyRef{DB: w.db, Key: key}
	}
	w.all.serveKeys(refs, func(c StoreCall) {
		w.join(c.Store)
		if slices.ContainsFunc(w.keys, func(key []byte) bool { return c.Store.Exists(w.db, key) }) {
			w.all.serveOne(c, w, w.db)
		}
	})
}

package redis

import (
	"context"
	"sync"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
)

// view gives one goroutine of a [Follower] access to the keyspace.
type view struct {
	ctx    context.Context
	handle *keyspace.Handle
	// storing is locked while a reading is stored and recorded, and while a database is emptied.
	// The views of both goroutines of a Follower share it.
	storing *sync.Mutex
}

// within enters the keyspace and calls f. It waits while another goroutine has exclusive use of the
// keyspace. If ctx ends meanwhile, within returns without calling f.
func (v *view) within(f func(h *keyspace.Handle)) {
	for !v.handle.Enter() {
		open := make(chan struct{}, 1)
		v.handle.Keyspace().World().NotifyStart(func() { open <- struct{}{} })
		select {
		case <-open:
		case <-v.ctx.Done():
			return
		}
	}
	defer v.handle.Leave()
	v.handle.Refresh()
	f(v.handle)
}

// put sets the key n to e, even above maxmemory, because the primary has decided that. The error
// is [limit.ErrNotKept] if the keyspace refuses changes or ctx has ended.
func (v *view) put(n name, e entry.Entry) (err error) {
	err = limit.ErrNotKept
	v.within(func(h *keyspace.Handle) {
		if h.Refuses() {
			return
		}
		key := []byte(n.key)
		h.Lock([]keyspace.Ref{{DB: n.db, Key: key}})
		defer h.Unlock()
		h.Begin()
		err = h.Put(n.db, key, e.Kind, e.Value, e.Expiry)
	})
	return err
}

// remove deletes the key n. The error is [limit.ErrNotKept] if the keyspace refuses changes or
// ctx has ended.
func (v *view) remove(n name) error {
	err := limit.ErrNotKept
	v.within(func(h *keyspace.Handle) {
		if !h.Refuses() {
			h.Delete(n.db, []byte(n.key))
			err = nil
		}
	})
	return err
}

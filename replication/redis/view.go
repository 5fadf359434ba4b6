package redis

import (
	"context"
	"sync"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
)

// view is the keyspace as one goroutine of a [Follower] uses it.
type view struct {
	ctx    context.Context
	handle *keyspace.Handle
	// storing is held while what was read is stored and noted, and while a database is
	// emptied. Both views of a Follower have the same.
	storing *sync.Mutex
}

// within calls f inside the world. It does nothing if ctx ends before that opens.
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

// put makes a key hold e, whatever memory is full: the primary has decided that.
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

// remove removes a key.
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

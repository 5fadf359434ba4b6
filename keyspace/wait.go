package keyspace

import (
	"container/list"
	"slices"

	"github.com/cellserver/cellserver/entry"
)

// Enqueue puts w at the end of the queue of key and reports whether w is the first. Only the first
// waiter needs a timer: the others are woken when they become the first. The caller waits because
// the limiter has refused it. To lose no wake-up, the caller gets the refusal under the same Lock,
// or asks the limiter once more after Enqueue.
func (v *Handle) Enqueue(db int, key []byte, w *Waiter) (first bool) {
	h := v.ks.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	w.name, w.hash, w.queued = keyName{db, string(key)}, h, true
	if s.queues == nil {
		s.queues = make(map[keyName]*queue)
	}
	q := s.queues[w.name]
	if q == nil {
		q = new(queue)
		s.queues[w.name] = q
	}
	q.waiters = append(q.waiters, w)
	return len(q.waiters) == 1
}

// First reports whether w is the first in its queue. It returns false after [Handle.Dequeue].
func (v *Handle) First(w *Waiter) bool {
	s := v.lock(w.hash)
	defer v.unlock(s)
	return w.queued && s.queues[w.name].waiters[0] == w
}

// Dequeue takes w out of its queue. If another waiter becomes the first by that, Dequeue wakes it.
// A second call does nothing.
func (v *Handle) Dequeue(w *Waiter) {
	s := v.lock(w.hash)
	defer v.unlock(s)
	if !w.queued {
		return
	}
	w.queued = false
	q := s.queues[w.name]
	i := slices.Index(q.waiters, w)
	q.waiters = slices.Delete(q.waiters, i, i+1)
	switch {
	case len(q.waiters) == 0:
		delete(s.queues, w.name)
		if len(s.queues) == 0 {
			s.queues = nil
		}
	case i == 0:
		q.waiters[0].Wake()
	}
}

// Waiting returns the number of waiters in the queues of all keys. It locks one shard after
// another.
func (ks *Keyspace) Waiting() (n int) {
	for i := range ks.shards {
		s := &ks.shards[i]
		s.mu.Lock()
		for _, q := range s.queues {
			n += len(q.waiters)
		}
		s.mu.Unlock()
	}
	return n
}

// Served is the result of an attempt to serve a [PopWaiter]: see [Handle.Serve].
type Served uint8

const (
	// ServedYes means that the waiter has got an element or an error.
	ServedYes Served = iota
	// ServedGone means that the wait has ended for another reason, and the waiter is about to leave
	// its queues.
	ServedGone
	// ServedLater means that the handle does not hold all keys that the waiter needs.
	ServedLater
)

// EnqueuePop puts w at the end of the queues of keys of database db, once in each queue. The handle
// must hold the keys: the caller checks under the same locks whether there is an element to take,
// so that it misses none.
func (v *Handle) EnqueuePop(db int, keys [][]byte, w *PopWaiter) {
	for _, key := range keys {
		h := v.ks.hash(key)
		s := v.lock(h)
		if s.pops == nil {
			s.pops = make(map[keyName]*popQueue)
		}
		q := s.pops[keyName{db, string(key)}]
		if q == nil {
			q = &popQueue{name: keyName{db, string(key)}, hash: h}
			s.pops[q.name] = q
		}
		if last := q.waiters.Back(); last == nil || last.Value != w {
			w.places = append(w.places, popPlace{q, q.waiters.PushBack(w)})
		}
		v.unlock(s)
	}
}

// DequeuePop takes w out of its queues. It locks the keys one after another, so the handle must
// hold no keys.
func (v *Handle) DequeuePop(w *PopWaiter) {
	for i := range w.places {
		q := w.places[i].queue
		s := v.lock(q.hash)
		q.waiters.Remove(w.places[i].at)
		if q.lacking == w {
			q.lacking = nil
		}
		if q.waiters.Len() == 0 {
			delete(s.pops, q.name)
			if len(s.pops) == 0 {
				s.pops = nil
			}
		}
		v.unlock(s)
	}
	w.places = nil
}

// maxMoves is the maximum number of waiters in the queue of one key that AppendMoves examines, and
// maxMoved is about the maximum number of keys that it appends. If the turn of a further waiter
// comes and the handle does not hold the keys that the waiter needs, the waiter is served a moment
// later.
const (
	maxMoves = 16
	maxMoved = 64
)

// AppendMoves appends to refs the keys that may be needed to serve the waiters in the queues of
// refs, and returns the result, so that all these keys can be locked together. Such keys are the
// destinations of the waiters, and the keys of a waiter that hold another kind than the waiter
// waits for. AppendMoves also follows the queues of the appended keys. It locks one key after
// another, so the handle must hold no keys.
func (v *Handle) AppendMoves(refs []Ref) []Ref {
	named, most := len(refs), len(refs)+maxMoved
	for i := 0; i < len(refs) && len(refs) < most; i++ {
		h := v.ks.hash(refs[i].Key)
		s := v.lock(h)
		if q := s.pops[keyName{refs[i].DB, string(refs[i].Key)}]; q != nil {
			need := func(w *PopWaiter) {
				if w.Dest != nil && !names(refs[named:], refs[i].DB, w.Dest) {
					refs = append(refs, Ref{refs[i].DB, w.Dest})
				}
				for strange := range w.strange {
					if key := []byte(strange.name.key); !names(refs, refs[i].DB, key) {
						refs = append(refs, Ref{refs[i].DB, key})
					}
				}
			}
			if q.lacking != nil {
				need(q.lacking)
			}
			n := 0
			for e := q.waiters.Front(); e != nil && n < maxMoves; e = e.Next() {
				need(e.Value.(*PopWaiter))
				n++
			}
		}
		v.unlock(s)
	}
	return refs
}

// names reports whether refs has the key of database db.
func names(refs []Ref, db int, key []byte) bool {
	for i := range refs {
		if refs[i].DB == db && string(refs[i].Key) == string(key) {
			return true
		}
	}
	return false
}

// Serving makes the handle collect the queues of the keys that change from now on. The goroutine
// has to call [Handle.Serve] before it unlocks the keys, so that no other client takes elements
// that are for waiters. Unlock ends this state.
func (v *Handle) Serving() { v.serving = true }

// IsLocked reports whether the handle has locked the shard of key. It does not consider claims.
func (v *Handle) IsLocked(key []byte) bool {
	return v.holding && v.held.has(int(v.ks.hash(key)>>v.ks.shift))
}

// MarkReady makes [Handle.Serve] examine the queue of key as if key had changed. It answers a call
// of PopWaiter.Ready, which may be called again from now on. The handle must hold key.
func (v *Handle) MarkReady(db int, key []byte) {
	s := v.lock(v.ks.hash(key))
	if q := s.pops[keyName{db, string(key)}]; q != nil {
		q.called = false
	}
	s.notifyPops(db, key)
}

// Serve offers the elements of the keys that have changed since [Handle.Serving] to their waiters.
// It takes the keys in the order of the changes, and the waiters of a key in the order of their
// arrival. f serves the waiter w with key, which holds elements of the kind that w waits for. f may
// change keys that the handle holds; the waiters of these keys are served afterwards. If f returns
// ServedLater, or the handle does not hold all keys that w needs, Serve calls Ready of w and goes
// on with the next key.
func (v *Handle) Serve(f func(w *PopWaiter, db int, key []byte) Served) {
	for len(v.ready) > 0 {
		q := v.ready[0]
		v.ready = v.ready[1:]
		q.ready = false
		v.serveQueue(q, f)
	}
	v.ready = nil
}

// serveQueue offers the elements of q's key to its waiters, in the order of their arrival. It ends
// when the key has no elements left or a waiter cannot be served. It passes over waiters for
// another kind than the key's.
func (v *Handle) serveQueue(q *popQueue, f func(w *PopWaiter, db int, key []byte) Served) {
	s := v.lock(q.hash)
	key := []byte(q.name.key)
	var next *list.Element
	for e := q.waiters.Front(); e != nil; e = next {
		next = e.Next()
		kind := s.get(q.name.db, q.hash, key).Kind
		w := e.Value.(*PopWaiter)
		switch {
		case kind == entry.None:
			return
		case base(kind) != w.Kind:
			continue
		}
		if !v.holds(w) || f(w, q.name.db, key) == ServedLater {
			q.lacking = w
			q.call(w)
			return
		}
	}
}

// holds reports whether the handle has locked all keys of w that strange yields.
func (v *Handle) holds(w *PopWaiter) bool {
	for q := range w.strange {
		if !v.holding || !v.held.has(int(q.hash>>v.ks.shift)) {
			return false
		}
	}
	return true
}

// PopWaiting returns the number of places of PopWaiters in the queues of all keys: a waiter counts
// once for each of its keys. It locks one shard after another.
func (ks *Keyspace) PopWaiting() (n int) {
	for i := range ks.shards {
		s := &ks.shards[i]
		s.mu.Lock()
		for _, q := range s.pops {
			n += q.waiters.Len()
		}
		s.mu.Unlock()
	}
	return n
}

package keyspace

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/waiting"
)

// Enqueue puts w into the queue of key, by its rank, and reports whether w is the first. Only the first
// waiter needs a timer: the others are woken when they become the first. The caller waits because
// the limiter has refused it. To lose no wake-up, the caller gets the refusal under the same Lock,
// or asks the limiter once more after Enqueue.
func (v *Handle) Enqueue(db int, key []byte, w *waiting.Waiter) (first bool) {
	w.Hash = v.ks.hash(key)
	s := v.lock(w.Hash)
	defer v.unlock(s)
	return s.room.Add(db, key, w)
}

// First reports whether w is the first in its queue. It returns false after [Handle.Dequeue].
func (v *Handle) First(w *waiting.Waiter) bool {
	s := v.lock(w.Hash)
	defer v.unlock(s)
	return s.room.First(w)
}

// Dequeue takes w out of its queue. If another waiter becomes the first by that, Dequeue wakes it.
// A second call does nothing.
func (v *Handle) Dequeue(w *waiting.Waiter) {
	s := v.lock(w.Hash)
	defer v.unlock(s)
	s.room.Remove(w)
}

// Waiting returns the number of waiters in the queues of all keys. It locks one shard after
// another.
func (ks *Keyspace) Waiting() (n int) {
	for i := range ks.shards {
		s := &ks.shards[i]
		s.mu.Lock()
		n += s.room.Len()
		s.mu.Unlock()
	}
	return n
}

// Served is the result of an attempt to serve a [waiting.PopWaiter]: see [Handle.Serve].
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
func (v *Handle) EnqueuePop(db int, keys [][]byte, w *waiting.PopWaiter) {
	for _, key := range keys {
		h := v.ks.hash(key)
		s := v.lock(h)
		s.pops.Add(db, key, h, w)
		v.unlock(s)
	}
}

// DequeuePop takes w out of its queues. It locks the keys one after another, so the handle must
// hold no keys.
func (v *Handle) DequeuePop(w *waiting.PopWaiter) {
	for i := range w.Queues() {
		s := v.lock(w.Queue(i).Hash)
		s.pops.Leave(w, i)
		v.unlock(s)
	}
	w.Forget()
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
		if q := s.pops.Queue(refs[i].DB, refs[i].Key); q != nil {
			for w := range q.First(maxMoves) {
				if w.Dest != nil && !names(refs[named:], refs[i].DB, w.Dest) {
					refs = append(refs, Ref{refs[i].DB, w.Dest})
				}
				for strange := range w.Strange {
					if key := []byte(strange.Key.Name); !names(refs, refs[i].DB, key) {
						refs = append(refs, Ref{refs[i].DB, key})
					}
				}
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
func (v *Handle) Serving() { v.pops.Begin() }

// IsLocked reports whether the handle has locked the shard of key. It does not consider claims.
func (v *Handle) IsLocked(key []byte) bool {
	return v.holding && v.held.has(int(v.ks.hash(key)>>v.ks.shift))
}

// MarkReady makes [Handle.Serve] examine the queue of key as if key had changed. It answers a call
// of PopWaiter.Ready, which may be called again from now on. The handle must hold key.
func (v *Handle) MarkReady(db int, key []byte) {
	s := v.lock(v.ks.hash(key))
	if q := s.pops.Queue(db, key); q != nil {
		q.Again()
	}
	s.notifyPops(db, key)
}

// Serve offers the elements of the keys that have changed since [Handle.Serving] to their waiters.
// It takes the keys in the order of the changes, and the waiters of a key in the order of their
// arrival. f serves the waiter w with key, which holds elements of the kind that w waits for. f may
// change keys that the handle holds; the waiters of these keys are served afterwards. If f returns
// ServedLater, or the handle does not hold all keys that w needs, Serve calls Ready of w and goes
// on with the next key.
func (v *Handle) Serve(f func(w *waiting.PopWaiter, db int, key []byte) Served) {
	for q := v.pops.Take(); q != nil; q = v.pops.Take() {
		v.serveQueue(q, f)
	}
}

// serveQueue offers the elements of q's key to its waiters, in the order of their arrival. It ends
// when the key has no elements left or a waiter cannot be served. It passes over waiters for
// another kind than the key's.
func (v *Handle) serveQueue(q *waiting.PopQueue, f func(w *waiting.PopWaiter, db int, key []byte) Served) {
	s := v.lock(q.Hash)
	key := []byte(q.Key.Name)
	for w := range q.All {
		switch kind := s.get(q.Key.DB, q.Hash, key).Kind; {
		case kind == entry.None:
			return
		case base(kind) != w.Kind:
			continue
		}
		if !v.holds(w) || f(w, q.Key.DB, key) == ServedLater {
			q.Lacks(w)
			return
		}
	}
}

// holds reports whether the handle has locked all keys of w that Strange yields.
func (v *Handle) holds(w *waiting.PopWaiter) bool {
	for q := range w.Strange {
		if !v.holding || !v.held.has(int(q.Hash>>v.ks.shift)) {
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
		n += s.pops.Len()
		s.mu.Unlock()
	}
	return n
}

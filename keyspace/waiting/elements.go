package waiting

import (
	"container/list"
	"sync/atomic"

	"github.com/cellserver/cellserver/entry"
)

// PopWaiter waits in the queues of several keys until one of the keys has elements. The caller makes a
// PopWaiter with the exported fields set and uses it for one wait.
type PopWaiter struct {
	// Kind is [entry.List] or [entry.SortedSet]: the kind of the keys from which the waiter takes
	// elements.
	Kind entry.Kind
	// Dest is the key to which the command of the waiter moves the element; nil if it does not move
	// elements.
	Dest []byte
	// Owner is not used by the keyspace. The function that serves the waiter finds its own data in
	// it.
	Owner any
	// Ready is called when the key has changed, this waiter is the first in the key's queue, and
	// the goroutine that changed the key does not serve waiters. It is also called for a waiter that
	// could not be served because the goroutine had not locked all keys that the waiter needs. Ready
	// is called with a shard locked: it may only arrange that the key is served later. Until a call of
	// [PopQueue.Again], Ready is not called again for the key, however often the key changes.
	Ready func(db int, key string)

	places []place
}

// place is the place of a PopWaiter in the queue of one key.
type place struct {
	queue *PopQueue
	at    *list.Element
}

// PopQueue has the waiters for elements of one key, in the order of their arrival.
type PopQueue struct {
	Key Key
	// Hash is the hash of the key.
	Hash uint64

	waiters list.List // the waiters, as values of type *PopWaiter
	// kind is the kind of the key after its last change. Any goroutine may read it.
	kind atomic.Uint32
	// lacking is the last waiter that was not served because the goroutine had not locked all keys
	// that the waiter needs; nil if there is none.
	lacking *PopWaiter
	ready   bool // the queue is in Server.ready of the goroutine that has locked the key
	called  bool // Ready was called, and Again has not been called since then
}

// Elements has the waiters for elements, in a queue for each key. The zero value has none.
type Elements struct {
	queues map[Key]*PopQueue // the queue of each key that has waiters; nil if there are none
}

// Any reports whether there are waiters.
func (e *Elements) Any() bool { return e.queues != nil }

// Queue returns the queue of the key called name in the database db, or nil if the key has no
// waiters.
func (e *Elements) Queue(db int, name []byte) *PopQueue { return e.queues[Key{db, string(name)}] }

// Add puts w at the end of the queue of the key called name in the database db, unless it is the
// last there already. hash is the hash of the key. Add copies name if the queue is a new one.
func (e *Elements) Add(db int, name []byte, hash uint64, w *PopWaiter) {
	q := e.Queue(db, name)
	if q == nil {
		if e.queues == nil {
			e.queues = make(map[Key]*PopQueue)
		}
		q = &PopQueue{Key: Key{db, string(name)}, Hash: hash}
		e.queues[q.Key] = q
	}
	if last := q.waiters.Back(); last == nil || last.Value != w {
		w.places = append(w.places, place{q, q.waiters.PushBack(w)})
	}
}

// Queues returns the number of queues in which w waits.
func (w *PopWaiter) Queues() int { return len(w.places) }

// Queue returns queue i of w, counted from 0.
func (w *PopWaiter) Queue(i int) *PopQueue { return w.places[i].queue }

// Leave removes w from its queue i, which must be a queue of e. When w has left all its queues, the
// caller has to call [PopWaiter.Forget].
func (e *Elements) Leave(w *PopWaiter, i int) {
	q := w.places[i].queue
	q.waiters.Remove(w.places[i].at)
	if q.lacking == w {
		q.lacking = nil
	}
	if q.waiters.Len() > 0 {
		return
	}
	if delete(e.queues, q.Key); len(e.queues) == 0 {
		e.queues = nil
	}
}

// Forget drops the references of w to its queues. w must have left them all.
func (w *PopWaiter) Forget() { w.places = nil }

// Len returns the number of places in all queues: a waiter counts once for each of its keys.
func (e *Elements) Len() (n int) {
	for _, q := range e.queues {
		n += q.waiters.Len()
	}
	return n
}

// maxStrange is the maximum number of queues that Strange yields for one waiter.
const maxStrange = 16

// Strange yields the queues of those keys of w that hold another kind than w waits for, or held
// another kind until they expired: at most maxStrange of them. If w is served with such a key
// before any other, the command of w gets an error. The kind of a key that is not locked may change
// at any time.
func (w *PopWaiter) Strange(yield func(q *PopQueue) bool) {
	n := 0
	for i := range w.places {
		q := w.places[i].queue
		if k := entry.Kind(q.kind.Load()); k == entry.None || k == w.Kind {
			continue
		}
		if n++; n > maxStrange || !yield(q) {
			return
		}
	}
}

// All yields the waiters in the order of their arrival. The function yield may remove from the
// queue the waiter that it gets.
func (q *PopQueue) All(yield func(w *PopWaiter) bool) {
	var next *list.Element
	for at := q.waiters.Front(); at != nil; at = next {
		next = at.Next()
		if !yield(at.Value.(*PopWaiter)) {
			return
		}
	}
}

// First yields the waiters that may be served next: the waiter of the last call of [PopQueue.Lacks], if
// it is still in the queue, and the first n in the queue. It may yield a waiter twice. The function
// yield must not change the queue.
func (q *PopQueue) First(n int) func(yield func(w *PopWaiter) bool) {
	return func(yield func(w *PopWaiter) bool) {
		if q.lacking != nil && !yield(q.lacking) {
			return
		}
		at := q.waiters.Front()
		for range n {
			if at == nil || !yield(at.Value.(*PopWaiter)) {
				return
			}
			at = at.Next()
		}
	}
}

// Lacks records that w, a waiter of q, cannot be served because the goroutine has not locked all
// keys that w needs. It calls Ready of w, unless Ready was called for q and [PopQueue.Again] was
// not called since.
func (q *PopQueue) Lacks(w *PopWaiter) {
	q.lacking = w
	q.call(w)
}

// Again permits the next call of Ready for the key of q.
func (q *PopQueue) Again() { q.called = false }

// Changed records that the key of q has changed, and has the given kind now. If by serves waiters,
// by collects q. Otherwise, or if by is nil, Changed calls Ready of the first waiter if the key is
// a list or a sorted set: no waiter takes elements of other kinds. If q is collected already,
// Changed only records the kind.
func (q *PopQueue) Changed(kind entry.Kind, by *Server) {
	q.kind.Store(uint32(kind))
	switch {
	case q.ready:
	case by != nil && by.serving:
		q.ready = true
		by.ready = append(by.ready, q)
	case kind == entry.List || kind == entry.SortedSet:
		q.wake()
	}
}

// wake calls Ready of the first waiter, if there is one, under the condition of call.
func (q *PopQueue) wake() {
	if at := q.waiters.Front(); at != nil {
		q.call(at.Value.(*PopWaiter))
	}
}

// call calls Ready of w, a waiter of q, unless Ready was called for q and [PopQueue.Again] was not
// called since.
func (q *PopQueue) call(w *PopWaiter) {
	if !q.called {
		q.called = true
		w.Ready(q.Key.DB, q.Key.Name)
	}
}

// Server collects the queues of changed keys that one goroutine has to serve before it unlocks the
// keys. The zero value collects none.
type Server struct {
	serving bool
	ready   []*PopQueue // queues of the keys that have changed since Begin
}

// Begin makes s collect the queues of the keys that change from now on.
func (s *Server) Begin() { s.serving = true }

// Serving reports whether Begin was called, and End was not called since.
func (s *Server) Serving() bool { return s.serving }

// Take removes the next collected queue and returns it, in the order of the changes. It returns nil if
// there is none.
func (s *Server) Take() *PopQueue {
	if len(s.ready) == 0 {
		s.ready = nil
		return nil
	}
	q := s.ready[0]
	s.ready = s.ready[1:]
	q.ready = false
	return q
}

// End makes s collect no more queues. It drops the collected queues that were not served, and calls
// Ready of their first waiters.
func (s *Server) End() {
	s.serving = false
	for _, q := range s.ready {
		q.ready = false
		q.wake()
	}
	s.ready = nil
}

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
	// Dest is the key to which the taken element is moved; nil if the element is not moved.
	Dest []byte
	// Owner is not used by the keyspace. The function that serves the waiter finds its own data
	// there.
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

// PopQueue has the waiters for elements of one key in the order of their arrival.
type PopQueue struct {
	Key Key
	// Hash is the hash of the key.
	Hash uint64

	waiters list.List // of *PopWaiter
	// kind is the kind of the key after its last change. Any goroutine may read it.
	kind atomic.Uint32
	// lacking is the waiter that was not served because the goroutine had not locked all keys that
	// the waiter needs, or nil.
	lacking *PopWaiter
	ready   bool // the queue is in Server.ready of the goroutine that has locked the key
	called  bool // Ready was called, and Again was not called since
}

// Elements has the waiters for elements, in a queue for each key. The zero value has none.
type Elements struct {
	queues map[Key]*PopQueue // no queue is empty; nil while there are none
}

// Any reports whether there are waiters.
func (e *Elements) Any() bool { return e.queues != nil }

// Queue returns the queue of the key called name in the database db, or nil.
func (e *Elements) Queue(db int, name []byte) *PopQueue { return e.queues[Key{db, string(name)}] }

// Add puts w at the end of the queue of the key called name in the database db, unless it is there
// already. hash is the hash of the key. Add copies name if the queue is a new one.
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

// Leave takes w out of its queue i, which is one of e. After it left all of them, the caller calls
// [PopWaiter.Forget].
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

// Forget forgets the queues of w, all of which w has left.
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
// another kind until they expired: at most 16. If w is served with such a key before any other, the
// command of w gets an error. The kind of a key that is not locked may change at any time.
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

// All yields the waiters in the order of their arrival. The waiter that was yielded last may leave the
// queue.
func (q *PopQueue) All(yield func(w *PopWaiter) bool) {
	var next *list.Element
	for at := q.waiters.Front(); at != nil; at = next {
		next = at.Next()
		if !yield(at.Value.(*PopWaiter)) {
			return
		}
	}
}

// First yields the waiters that may be served next: the one that was not served for lack of locked
// keys, if there is one, and the first n in the queue.
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

// Lacks records that w, a waiter of q, cannot be served because the goroutine has not locked all keys
// that w needs. It calls Ready of w.
func (q *PopQueue) Lacks(w *PopWaiter) {
	q.lacking = w
	q.call(w)
}

// Again permits that Ready is called again for the key of q.
func (q *PopQueue) Again() { q.called = false }

// Changed records that the key of q has changed, and that it is of the given kind now. If by serves
// waiters, q is added to the queues that it will serve. Otherwise, or if by is nil, Changed calls Ready
// of the first waiter if the key is a list or a sorted set: no waiter takes elements of other kinds.
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

// wake calls Ready of the first waiter, if there is a waiter: see call.
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

// Server has the queues that one goroutine has to serve before it unlocks their keys. The zero value
// serves none.
type Server struct {
	serving bool
	ready   []*PopQueue // queues of the keys that have changed since Begin
}

// Begin makes the server collect the queues of the keys that change from now on.
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

// End ends what Begin has begun. If queues were left unserved, End calls Ready of their first waiters.
func (s *Server) End() {
	s.serving = false
	for _, q := range s.ready {
		q.ready = false
		q.wake()
	}
	s.ready = nil
}

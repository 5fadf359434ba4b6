package remote

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// queues has the waiters for room under each key, in the order of arrival.
type queues struct {
	number atomic.Int64 // of all waiters

	mu    sync.Mutex
	byKey map[string]*list.List // guarded by mu: lists of tickets; none is empty
}

// ticket is a waiter's place in the queue of a key.
type ticket struct {
	key   string
	wake  func()
	place *list.Element // guarded by the mutex of the queues: nil after it has left
}

// enqueue adds a waiter to the end of the queue of a key, and reports whether it is the first.
func (q *queues) enqueue(key []byte, wake func()) (t *ticket, first bool) {
	t = &ticket{key: string(key), wake: wake}
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.byKey[t.key]
	if waiting == nil {
		waiting = list.New()
		q.byKey[t.key] = waiting
	}
	t.place = waiting.PushBack(t)
	q.number.Add(1)
	return t, waiting.Len() == 1
}

// isFirst reports whether t is the first of its queue.
func (q *queues) isFirst(t *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.place != nil && q.byKey[t.key].Front() == t.place
}

// dequeue removes t from its queue, unless it has left already, and wakes the waiter that becomes
// the first.
func (q *queues) dequeue(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.place == nil {
		return
	}
	waiting := q.byKey[t.key]
	wasFirst := waiting.Front() == t.place
	waiting.Remove(t.place)
	t.place = nil
	q.number.Add(-1)
	switch next := waiting.Front(); {
	case next == nil:
		delete(q.byKey, t.key)
	case wasFirst:
		next.Value.(*ticket).wake()
	}
}

// wake wakes the first waiter of a key, and wakeAll the first of each key.
func (q *queues) wake(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if waiting := q.byKey[key]; waiting != nil {
		waiting.Front().Value.(*ticket).wake()
	}
}

func (q *queues) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, waiting := range q.byKey {
		waiting.Front().Value.(*ticket).wake()
	}
}

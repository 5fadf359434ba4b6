package adapter

import (
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/env"
)

// queues has the clients that wait for room, in a queue for each key, in the order of their ranks and, with
// the same rank, of their arrival. Any goroutine may use it.
type queues struct {
	number atomic.Int64 // the number of all waiting clients

	mu    sync.Mutex
	byKey map[string]*list.List // the tickets of each key that has any, in their order; guarded by mu
}

// ticket is the place of a waiting client in the queue of a key.
type ticket struct {
	key   string
	rank  int64
	wake  func()
	place *list.Element // the element with the ticket; nil after the ticket has left its queue; guarded by the mutex of the queues
}

// enqueue adds a client to the queues of keys at once, after all of its rank, and reports whether it is the first in
// all of them. wake is called when the client becomes the first in one or there may be room. It is called with the
// mutex of the queues locked, and must not call methods of the queues.
func (q *queues) enqueue(keys []env.KeyRef, rank int64, wake func()) (tickets []any, first bool) {
	tickets, first = make([]any, len(keys)), true
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, k := range keys {
		t := &ticket{key: string(k.Key), rank: rank, wake: wake}
		tickets[i], first = t, q.add(t) && first
	}
	return tickets, first
}

// add adds t to its queue, and reports whether it is the first there. The mutex must be locked.
func (q *queues) add(t *ticket) (first bool) {
	waiting := q.byKey[t.key]
	if waiting == nil {
		waiting = list.New()
		q.byKey[t.key] = waiting
	}
	before := waiting.Back()
	for before != nil && before.Value.(*ticket).rank > t.rank {
		before = before.Prev()
	}
	if before == nil {
		t.place = waiting.PushFront(t)
	} else {
		t.place = waiting.InsertAfter(t, before)
	}
	q.number.Add(1)
	return before == nil
}

func (q *queues) isFirst(t *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.place != nil && q.byKey[t.key].Front() == t.place
}

// dequeue removes t from its queue, unless t has left it already. If another client becomes the
// first, dequeue wakes that client.
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

// wake wakes the first client in the queue of key, if there is one.
func (q *queues) wake(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if waiting := q.byKey[key]; waiting != nil {
		waiting.Front().Value.(*ticket).wake()
	}
}

// wakeAll wakes the first client in each queue.
func (q *queues) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, waiting := range q.byKey {
		waiting.Front().Value.(*ticket).wake()
	}
}

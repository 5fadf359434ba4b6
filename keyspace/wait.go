package keyspace

import "slices"

// Waiter is somebody who waits for room under a key, behind those who came before.
// It is made with Wake set and used for one wait.
type Waiter struct {
	// Wake is called when there may be room now, or when this waiter has become the
	// first. It is called with a shard locked: it must neither block nor use the
	// keyspace. It may be called when there is no room after all.
	Wake func()

	name   keyName
	hash   uint64
	queued bool // guarded by the shard's lock
}

// queue holds the waiters of one key, the first in front.
type queue struct{ waiters []*Waiter }

// Enqueue puts w at the end of the queue for key and reports whether it is the
// first. Only the first needs a timer: the others are woken when they become it.
// To lose no wake-up, the refusal that makes somebody wait is decided under the
// same Hold, or once more after Enqueue.
func (v *View) Enqueue(db int, key []byte, w *Waiter) (first bool) {
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

// First reports whether w is the first of its queue.
func (v *View) First(w *Waiter) bool {
	s := v.lock(w.hash)
	defer v.unlock(s)
	return w.queued && s.queues[w.name].waiters[0] == w
}

// Dequeue takes w out of its queue, once, and wakes who becomes the first by that.
func (v *View) Dequeue(w *Waiter) {
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

// Waiting is how many waiters there are under all keys.
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

func (s *shard) wakeHead(db int, key []byte) {
	if q := s.queues[keyName{db, string(key)}]; q != nil {
		q.waiters[0].Wake()
	}
}

func (s *shard) wakeHeads(db int) {
	for name, q := range s.queues {
		if name.db == db {
			q.waiters[0].Wake()
		}
	}
}

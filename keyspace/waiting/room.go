package waiting

import "slices"

// Key identifies a key by its name and the index of its database.
type Key struct {
	DB   int
	Name string
}

// Waiter waits in the queue of a key for room in the limiter at that key. The caller makes a Waiter
// with Wake set and uses it for one wait.
type Waiter struct {
	// Wake is called when this waiter becomes the first because another waiter has left the queue,
	// and when it is the first and there may be room for it. A call does not guarantee that there
	// is room. Wake is called with a shard locked: it must neither block nor use the keyspace.
	Wake func()
	// Rank orders the queue: a waiter with a lower rank comes before those with a higher one, whenever it has
	// come. All waiters of one call must have the same rank, so that two calls which wait for the same keys have
	// the same order in each queue.
	Rank int64
	// Hash is the hash of the key. The keyspace sets it.
	Hash uint64

	key    Key
	queued bool
}

// Room has the waiters for room, in a queue for each key in the order of their ranks and, with the same rank,
// of their arrival. The zero value has none.
type Room struct {
	queues map[Key][]*Waiter // the waiters of each key that has any; nil if there are none
}

// Any reports whether there are waiters.
func (r *Room) Any() bool { return r.queues != nil }

// Add puts w into the queue of the key called name in the database db, after all waiters of its rank, and reports
// whether it is the first there. It copies name.
func (r *Room) Add(db int, name []byte, w *Waiter) (first bool) {
	w.key, w.queued = Key{db, string(name)}, true
	if r.queues == nil {
		r.queues = make(map[Key][]*Waiter)
	}
	q := r.queues[w.key]
	at := len(q)
	for at > 0 && q[at-1].Rank > w.Rank {
		at--
	}
	r.queues[w.key] = slices.Insert(q, at, w)
	return at == 0
}

// First reports whether w is the first waiter in its queue. It returns false after [Room.Remove].
func (r *Room) First(w *Waiter) bool { return w.queued && r.queues[w.key][0] == w }

// Remove removes w from its queue. If w was the first, Remove wakes the waiter that becomes the
// first. A second call does nothing.
func (r *Room) Remove(w *Waiter) {
	if !w.queued {
		return
	}
	w.queued = false
	q := r.queues[w.key]
	i := slices.Index(q, w)
	q = slices.Delete(q, i, i+1)
	if len(q) > 0 {
		if r.queues[w.key] = q; i == 0 {
			q[0].Wake()
		}
		return
	}
	if delete(r.queues, w.key); len(r.queues) == 0 {
		r.queues = nil
	}
}

// Wake wakes the first waiter in the queue of the key called name in the database db, if there is one.
func (r *Room) Wake(db int, name []byte) {
	if q := r.queues[Key{db, string(name)}]; q != nil {
		q[0].Wake()
	}
}

// WakeAll wakes the first waiter of each queue of the database db.
func (r *Room) WakeAll(db int) {
	for k, q := range r.queues {
		if k.DB == db {
			q[0].Wake()
		}
	}
}

// Len returns the number of waiters in all queues.
func (r *Room) Len() (n int) {
	for _, q := range r.queues {
		n += len(q)
	}
	return n
}

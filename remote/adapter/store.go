// Package adapter implements [env.Store] for a server whose keys are in another store. It has the
// clock, the timers, the decisions and the queues of waiting clients, but no keys.
package adapter

import (
	"container/list"
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
)

// Stores creates the stores of the workers of one server. [Stores.NewStore] and [Stores.Remote]
// are for the fields of [env.Options] with these names. Any goroutine may call its methods.
type Stores struct {
	// Memory returns the figures of the memory that this process uses for keys. nil means that it
	// has none. It must be set before the first store is created.
	Memory func() env.MemoryStats

	decider   env.Remote
	afterFunc func(d time.Duration, f func()) (stop func() bool)
	waiting   queues
}

// New returns a Stores whose asks d decides. afterFunc runs a function on its own goroutine after the
// given time, unless stop is called before. stop reports whether it has prevented that.
func New(d env.Remote, afterFunc func(d time.Duration, f func()) (stop func() bool)) *Stores {
	return &Stores{decider: d, afterFunc: afterFunc, waiting: queues{byKey: make(map[string]*list.List)}}
}

// NewStore returns the store of one worker.
func (s *Stores) NewStore() env.Store { return &store{shared: s} }

// Waiting returns the number of places of clients that wait for room, in the queues of all keys together.
func (s *Stores) Waiting() int { return int(s.waiting.number.Load()) }

// store is the store of one worker. It implements [env.Store], but no interface for the values of
// keys, because no value is in this process.
type store struct {
	shared *Stores
	now    limit.Instant
}

// Decide implements [env.Store]: it submits a and blocks until a is decided. Only goroutines in
// the background may call it, because a worker must not block.
func (s *store) Decide(a *decide.Ask) {
	decided := make(chan struct{})
	s.shared.decider.Submit([]*decide.Ask{a}, false, func() { close(decided) })
	<-decided
}

// Refresh implements [env.Store]: it reads the deciding clock and returns its present instant. The
// instant may be earlier than the previous one.
func (s *store) Refresh() limit.Instant {
	s.now = s.shared.decider.Now()
	return s.now
}

// Now implements [env.Store]: it returns the instant of the last Refresh.
func (s *store) Now() limit.Instant { return s.now }

// Civil implements [env.Store]: it returns i, because the deciding clock shows civil time.
func (s *store) Civil(i limit.Instant) limit.Instant { return i }

// FromCivil implements [env.Store]: it returns i, because the deciding clock shows civil time.
func (s *store) FromCivil(i limit.Instant) limit.Instant { return i }

// AfterFunc implements [env.Store]: it calls f on its own goroutine after d, unless stop is
// called before.
func (s *store) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return s.shared.afterFunc(d, f)
}

// Enqueue implements [env.Store]: it adds a client to the queues of keys, and returns its places
// there. The numbers of the databases are ignored, because there is only one.
func (s *store) Enqueue(keys []env.KeyRef, rank int64, wake func()) (places []any, first bool) {
	return s.shared.waiting.enqueue(keys, rank, wake)
}

// First implements [env.Store]: it reports whether place is the first in its queue.
func (s *store) First(place any) bool { return s.shared.waiting.isFirst(place.(*ticket)) }

// Dequeue implements [env.Store]: it removes place from its queue, and wakes the client that
// becomes the first.
func (s *store) Dequeue(place any) { s.shared.waiting.dequeue(place.(*ticket)) }

// Stats implements [env.Store]: it returns the memory of the keys in this process. There are no
// databases, because clients do not see these keys.
func (s *store) Stats() env.StoreStats {
	if s.shared.Memory == nil {
		return env.StoreStats{}
	}
	return env.StoreStats{Memory: s.shared.Memory()}
}

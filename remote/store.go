// Package remote implements [env.Store] for a server whose keys are in another store. It has the
// clock, the timers and the queues of waiting clients that commands and sessions need, but no
// keys.
package remote

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

// Waiting returns the number of clients that wait for room, under all keys together.
func (s *Stores) Waiting() int { return int(s.waiting.number.Load()) }

// store is the store of one worker. It lacks the methods of [env.Store] that access keys: a call
// of them would panic, but no command calls them (see [command.NewStoreTable]).
type store struct {
	env.Store // nil

	shared *Stores
	now    limit.Instant
}

// Decide implements [env.Store]: it submits a and blocks until a is decided. Only goroutines in
// the background may call it.
func (s *store) Decide(a *decide.Ask) {
	decided := make(chan struct{})
	s.shared.decider.Submit([]*decide.Ask{a}, false, func() { close(decided) })
	<-decided
}

// Refresh implements [env.Store]: it returns the present instant of the deciding clock. The
// instant is earlier than the previous one if the deciding clock was found to be behind this
// machine's clock: EXPIRE and related commands have to use the deciding clock.
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

// Enqueue implements [env.Store]: it adds a client to the queue of key, and returns its place
// there. The number of the database is ignored, because there is only one.
func (s *store) Enqueue(_ int, key []byte, wake func()) (place any, first bool) {
	return s.shared.waiting.enqueue(key, wake)
}

// First implements [env.Store]: it reports whether place is the first in its queue.
func (s *store) First(place any) bool { return s.shared.waiting.isFirst(place.(*ticket)) }

// Dequeue implements [env.Store]: it removes place from its queue, and wakes the client that
// becomes the first.
func (s *store) Dequeue(place any) { s.shared.waiting.dequeue(place.(*ticket)) }

// The methods below do almost nothing, because the world is never stopped, nothing is locked, and
// nothing changes in this process.

func (s *store) Enter() bool                              { return true }
func (s *store) Leave()                                   {}
func (s *store) NotifyStart(wake func())                  { wake() }
func (s *store) WakeWaiting()                             {}
func (s *store) StopWorld() bool                          { return true }
func (s *store) StartWorld()                              {}
func (s *store) Lock([]env.KeyRef, any)                   {}
func (s *store) LockAll()                                 {}
func (s *store) Unlock()                                  {}
func (s *store) Begin()                                   {}
func (s *store) BeginFreeing()                            {}
func (s *store) Serving()                                 {}
func (s *store) Prefetch(int, [][]byte)                   {}
func (s *store) Observe(env.Observer)                     {}
func (s *store) Full() bool                               { return false }
func (s *store) Lacks(int64) bool                         { return false }
func (s *store) Stats() env.StoreStats                    { return env.StoreStats{} }
func (s *store) Weigh(int, []byte) (elements, copied int) { return 0, 0 }

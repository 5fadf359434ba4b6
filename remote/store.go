// Package remote implements [env.Store] for a server whose keys are in another store. It has the
// clock, the timers and the queues of waiting clients that commands and sessions need, but no keys.
package remote

import (
	"container/list"
	"time"

	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// Stores creates the stores of the workers of one server. [Stores.NewStore] and [Stores.Remote] are
// for the fields of [env.Options] with these names.
type Stores struct {
	decider   env.Remote
	afterFunc func(d time.Duration, f func()) (stop func() bool)
	waiting   queues
}

// New returns stores whose asks d decides. afterFunc runs a function on its own goroutine after a
// time, unless it is stopped.
func New(d env.Remote, afterFunc func(d time.Duration, f func()) (stop func() bool)) *Stores {
	return &Stores{decider: d, afterFunc: afterFunc, waiting: queues{byKey: make(map[string]*list.List)}}
}

// NewStore returns the store of one worker.
func (s *Stores) NewStore() env.Store { return &store{shared: s} }

// Waiting returns how many clients wait for room, under all keys.
func (s *Stores) Waiting() int { return int(s.waiting.number.Load()) }

// store is the store of one worker. The methods of [env.Store] that it lacks are about keys: no
// command calls them (see [command.NewStoreTable]), and a call would panic.
type store struct {
	env.Store // nil

	shared *Stores
	now    limit.Instant
}

// Decide submits an ask and waits for the decision. Only goroutines in the background may call it.
func (s *store) Decide(a *decide.Ask) {
	decided := make(chan struct{})
	s.shared.decider.Submit([]*decide.Ask{a}, false, func() { close(decided) })
	<-decided
}

// Refresh implements [env.Store]. The instant is earlier than the one before if the deciding clock
// was found to be behind this machine's: EXPIRE and related commands have to use the deciding
// clock.
func (s *store) Refresh() limit.Instant {
	s.now = s.shared.decider.Now()
	return s.now
}

// Now implements [env.Store].
func (s *store) Now() limit.Instant { return s.now }

// Civil implements [env.Store]: the deciding clock shows civil time.
func (s *store) Civil(i limit.Instant) limit.Instant { return i }

// FromCivil implements [env.Store].
func (s *store) FromCivil(i limit.Instant) limit.Instant { return i }

// AfterFunc implements [env.Store].
func (s *store) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return s.shared.afterFunc(d, f)
}

// Enqueue implements [env.Store].
func (s *store) Enqueue(_ int, key []byte, wake func()) (place any, first bool) {
	return s.shared.waiting.enqueue(key, wake)
}

// First implements [env.Store].
func (s *store) First(place any) bool { return s.shared.waiting.isFirst(place.(*ticket)) }

// Dequeue implements [env.Store].
func (s *store) Dequeue(place any) { s.shared.waiting.dequeue(place.(*ticket)) }

// The world is never stopped, nothing is locked, and nothing changes in this process.

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

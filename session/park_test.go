package session

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/limit"
)

// stoppedStore is a store that has only a world lock, which all of them share.
type stoppedStore struct {
	env.Local
	gate *testGate
}

// testGate is a world lock that opens once.
type testGate struct {
	mu      sync.Mutex
	open    bool
	waiting []func()
}

func (s stoppedStore) Observe(env.Observer)   {}
func (s stoppedStore) Refresh() limit.Instant { return 1 }
func (s stoppedStore) Leave()                 {}

func (s stoppedStore) Enter() bool {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return s.gate.open
}

func (s stoppedStore) NotifyStart(wake func()) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	s.gate.waiting = append(s.gate.waiting, wake)
}

// TestWaitingForTheWorldTakesNoWorker: while a script keeps the world stopped, waiting goroutines,
// such as the timers of thousands of clients, do not create workers.
func TestWaitingForTheWorldTakesNoWorker(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := &testGate{}
		e := NewEngine(env.Options{
			NewStore:  func() env.Store { return stoppedStore{gate: g} },
			Now:       func() limit.Instant { return 1 },
			Stopwatch: func() time.Duration { return 0 },
		}, command.NewTable(nil))
		ran := make(chan struct{}, 100)
		for i := range cap(ran) {
			e.Spawn(func() { e.WithStore(0, func(env.Store) { ran <- struct{}{} }) })
			synctest.Wait()
			require.Len(t, g.waiting, i+1, "it waits")
			require.Len(t, e.idleWorkers, len(e.everyWorker), "it has no worker")
		}
		require.Len(t, e.everyWorker, 1)
		require.Empty(t, ran)
		g.mu.Lock()
		g.open = true
		g.mu.Unlock()
		for _, wake := range g.waiting {
			wake()
		}
		e.slow.Wait()
		require.Len(t, ran, cap(ran), "all of it has run")
	})
}

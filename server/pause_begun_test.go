package server_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/transport"
)

// late is what the stores of goroutines in the background have in common, which get in late.
type late struct {
	came, enter, left chan struct{}
	letIn             func() // closes enter, once
}

// lateStore is one of them. There may be several at once.
type lateStore struct {
	env.Store
	*late
}

func (s lateStore) Enter() bool {
	tell(s.came)
	<-s.enter
	return s.Store.Enter()
}

func (s lateStore) Leave() {
	s.Store.Leave()
	tell(s.left)
}

// tell tells whoever listens, once.
func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// startLate starts an engine with one worker, beside which everything gets in late.
func startLate(t *testing.T) (e *engine, worker transport.Worker, all *late) {
	all = &late{came: make(chan struct{}, 1), enter: make(chan struct{}), left: make(chan struct{}, 1)}
	all.letIn = sync.OnceFunc(func() { close(all.enter) })
	loops := true // whose stores are made
	e = startEngine(t, transports()[0], func(st env.Store) env.Store {
		if loops {
			return st
		}
		return lateStore{st, all}
	})
	t.Cleanup(all.letIn) // before the engine waits for what is beside it
	worker = e.NewWorker()
	loops = false
	return e, worker, all
}

// TestBackgroundWorkBeginsAfterThePause: what is to change something in the background,
// and has not begun when a pause does, begins when that is over; or never, if the server
// stops before, and then its client is not told that it did.
func TestBackgroundWorkBeginsAfterThePause(t *testing.T) {
	const loop = "local n = 0 while n < 1 do n = n + 1 end return redis.call('DEL', KEYS[1])"
	for name, packet := range map[string][]byte{
		"offloaded": frame("FLUSHALL"),
		"alone":     append(append(frame("MULTI"), frame("EVAL", loop, "1", "k")...), frame("EXEC")...),
	} {
		for _, stops := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				e, worker, late := startLate(t)
				open := func() transport.Session {
					session, _ := e.Open(quietPeer{})
					t.Cleanup(session.Closed)
					return session
				}
				admin, changes := open(), open()
				do := func(words ...string) string { return string(admin.Feed(worker, frame(words...), nil).Out) }
				require.Equal(t, okReply, do("SET", "k", "v"))
				require.Equal(t, transport.Park, changes.Feed(worker, packet, nil).Next)
				<-late.came
				require.Equal(t, okReply, do("CLIENT", "PAUSE", "1000", "WRITE"))
				late.letIn()
				<-late.left
				// What runs alone leaves before it lets the others in again.
				eventually(t, "nothing is done", func() bool { return do("GET", "k") == bulk("v") })
				if stops {
					e.Drain()
					turn := changes.Feed(worker, nil, nil)
					require.Equal(t, transport.Close, turn.Next)
					require.Empty(t, turn.Out)
					return
				}
				e.clock.Advance(time.Second)
				eventually(t, "it is done", func() bool { return do("GET", "k") == "$-1\r\n" })
			})
		}
	}
}

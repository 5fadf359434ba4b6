package session_test

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/transport"
)

// held keeps a goroutine in the background from entering the store, at the at-th attempt from now.
type held struct {
	at          atomic.Int32
	came, enter chan struct{}
}

// heldStore is the store of such a goroutine.
type heldStore struct {
	env.Local
	*held
}

func (s heldStore) Enter() bool {
	if s.at.Add(-1) == 0 {
		s.came <- struct{}{}
		<-s.enter
	}
	return s.Local.Enter()
}

// openBusy returns a session of a server on which as many commands run in the background as may at
// once. They end when enter of held is closed. before is a command to run first.
func openBusy(t *testing.T, before ...string) (*inproc.Fed, *held) {
	t.Helper()
	held := &held{came: make(chan struct{}), enter: make(chan struct{})}
	first := true // the first store belongs to the session
	s := inproc.OpenWith(t, func(o *server.Options) {
		o.WrapStore = func(st env.Local) env.Local {
			if first {
				return st
			}
			return heldStore{st, held}
		}
	})
	first = false
	require.Equal(t, inproc.OK, s.Do(before...))
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		held.at.Store(2) // the first attempt is for the length of the reply
		require.Equal(t, transport.Park, s.Beside().Turn(inproc.Encode(nil, "RL.POLICY", "LIST"), nil).Next)
		<-held.came
	}
	return s, held
}

// TestUrgentCommandsDoNotWaitForTheBackground: while all turns in the background are taken,
// commands for incidents are answered, and commands that are not urgent wait.
func TestUrgentCommandsDoNotWaitForTheBackground(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s, held := openBusy(t, "RL.POLICY", "SET", "api", "LIMITS", "TB", "5", "1", "1")
		list := inproc.Encode(nil, "RL.POLICY", "LIST")
		parked := s.Beside()
		require.Equal(t, transport.Park, parked.Turn(list, nil).Next)
		require.Equal(t, inproc.OK, s.Do("RL.BLOCK", "api", "evil", "EX", "100"))
		require.Equal(t, inproc.Five(1, 5, 0, 100, 100), s.Do("RL.USE", "api", "evil"))
		require.Equal(t, ":1\r\n", s.Do("RL.UNBLOCK", "api", "evil"))
		w.Settle()
		require.Empty(t, parked.Turn(nil, nil).Out)
		close(held.enter)
		require.Equal(t, inproc.Array(inproc.Bulk("api")), parked.Rest())
	})
}

// TestCommandsThatWaitForTheirTurnAreRefused: when memory for clients is short, a long command that
// waits for its turn in the background is refused, which frees its memory. The connection stays
// open, and the command has no effect. A command that has begun continues.
func TestCommandsThatWaitForTheirTurnAreRefused(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s, held := openBusy(t, "CONFIG", "SET", "maxmemory", "64mb", "maxmemory-clients", "1kb")
		long := append([]string{"RPUSH", "l"}, slices.Repeat([]string{"an element"}, 20_000)...)
		waiting := s.Beside()
		require.Equal(t, transport.Park, waiting.Turn(inproc.Encode(nil, long...), nil).Next)
		require.Greater(t, s.Server().Engine().ClientMemory(), int64(20_000*len("an element")))
		s.Server().Engine().EvictClients(s.Server().Engine().ClientMemory())
		require.Equal(t, "-OOM command not allowed when used memory > 'maxmemory'.\r\n", waiting.Rest())
		require.Equal(t, inproc.Bulk("still there"), waiting.Do("ECHO", "still there"))
		require.Contains(t, s.Do("INFO", "stats"), "evicted_clients:0\r\n")
		close(held.enter)
		w.Settle()
		require.Equal(t, ":0\r\n", s.Do("EXISTS", "l"))
		waiting.Turn(inproc.Encode(nil, long...), nil)
		require.Equal(t, ":20000\r\n", waiting.Rest())
	})
}

// TestSlicesWithoutMemoryAreOne: a command that runs in slices keeps its arguments meanwhile. If
// there is no memory for them, it runs at once.
func TestSlicesWithoutMemoryAreOne(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, _ *inproc.World) {
		s := inproc.Open(t)
		many := inproc.Encode(nil, append([]string{"WATCH"}, slices.Repeat([]string{"x"}, 2000)...)...)
		require.Equal(t, transport.Again, s.Beside().Turn(many, nil).Next)
		require.Equal(t, inproc.OK, s.Do("CONFIG", "SET", "maxmemory", "64mb", "maxmemory-clients", "1kb"))
		turn := s.Beside().Turn(many, nil)
		require.Equal(t, transport.Read, turn.Next)
		require.Equal(t, inproc.OK, string(turn.Out))
	})
}

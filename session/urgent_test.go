package session_test

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/transport"
)

// held keeps a goroutine in the background from entering the store, the at-th time from now.
type held struct {
	at          atomic.Int32
	came, enter chan struct{}
}

// heldStore is the store of one.
type heldStore struct {
	env.Store
	*held
}

func (s heldStore) Enter() bool {
	if s.at.Add(-1) == 0 {
		s.came <- struct{}{}
		<-s.enter
	}
	return s.Store.Enter()
}

// openBusy returns a session of a server on which all that may run in the background at once does, and
// ends when enter of held is closed. before is what is said first.
func openBusy(t *testing.T, before ...string) (*inproc.Fed, *held) {
	t.Helper()
	held := &held{came: make(chan struct{}), enter: make(chan struct{})}
	first := true // it is the session's own
	s := inproc.OpenWith(t, func(o *server.Options) {
		o.WrapStore = func(st env.Store) env.Store {
			if first {
				return st
			}
			return heldStore{st, held}
		}
	})
	first = false
	require.Equal(t, inproc.OK, s.Do(before...))
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		held.at.Store(2) // first it asks how long the reply is
		require.Equal(t, transport.Park, s.Beside().Turn(inproc.Encode(nil, "RL.POLICY", "LIST"), nil).Next)
		<-held.came
	}
	return s, held
}

// TestUrgentCommandsDoNotWaitForTheBackground: while all that may run in the background does and
// does not end, what incidents need is answered, and what is not urgent waits.
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

// TestCommandsThatWaitForTheirTurnAreRefused: what a long command that waits for its turn in the
// background keeps is given back when memory for clients is short, by an error. The connection stays,
// and the command has no effect. One that has begun goes on.
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

// TestSlicesWithoutMemoryAreOne: a command that goes on in slices keeps its words meanwhile. Where there
// is no memory for them it is done at once.
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

package session_test

import (
	"runtime"
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

// TestUrgentCommandsDoNotWaitForTheBackground: while all that may run in the background does and
// does not end, what incidents need is answered, and what is not urgent waits.
func TestUrgentCommandsDoNotWaitForTheBackground(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		busy := max(1, runtime.GOMAXPROCS(0)/2)
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
		require.Equal(t, inproc.OK, s.Do("RL.POLICY", "SET", "api", "LIMITS", "TB", "5", "1", "1"))
		list := inproc.Encode(nil, "RL.POLICY", "LIST")
		for range busy {
			held.at.Store(2) // first it asks how long the reply is
			require.Equal(t, transport.Park, s.Beside().Turn(list, nil).Next)
			<-held.came
		}
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

package inproc

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Model is a simple implementation of a type of keys, with which a test compares the server.
type Model interface {
	// Do makes a random change to a key of the model. It returns the command for the change and the
	// expected reply.
	Do(r *rand.Rand) (command []string, reply string)
	// RequireState requires that all keys of the server are equal to the keys of the model. c is a
	// client of the server.
	RequireState(t *testing.T, c *Client)
}

// AgainstModel runs thousands of random commands. It requires the replies to be the replies of m,
// and the state to be the same after each of a few restarts.
func AgainstModel(t *testing.T, m Model) {
	t.Helper()
	Bubble(t, func(t *testing.T, w *World) {
		r := rand.New(rand.NewPCG(6, 5))
		s := w.Start("--appendonly", "yes")
		for range 4 {
			c := s.Dial()
			m.RequireState(t, c)
			var history []string
			for range 750 {
				command, reply := m.Do(r)
				history = append(history, strings.Join(command, " "))
				require.Equal(t, reply, c.Do(command...), "%v", history[max(0, len(history)-10):])
			}
			m.RequireState(t, c)
			require.NoError(t, s.Stop())
			s.Restart()
		}
	})
}

// FullMemory requires that a key stops growing when memory is full, and that commands that shrink
// the key still work. add is a command that makes the key grow, and remove is a command, without
// the element, that removes an element.
func FullMemory(t *testing.T, add string, remove ...string) {
	t.Helper()
	Bubble(t, func(t *testing.T, w *World) {
		c := w.Start("--maxmemory", "2mb").Dial()
		value := strings.Repeat("v", 1000)
		reply := ""
		for i := 0; i < 10_000 && reply != OOM; i++ {
			reply = c.Do(add, "k", value+strconv.Itoa(i))
			require.True(t, reply == OOM || reply[0] == ':', reply)
		}
		require.Equal(t, OOM, reply)
		require.Equal(t, OOM, c.Do(add, "k", "one more"))
		require.Equal(t, OOM, c.Do(add, "another", value))
		require.Equal(t, ":1\r\n", c.Do(append(remove, value+"0")...))
		require.Equal(t, ":1\r\n", c.Do("DEL", "k"))
		require.Equal(t, ":1\r\n", c.Do(add, "k", "again"))
	})
}

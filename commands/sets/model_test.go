package sets_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// model is what sets are, by their keys, as one would write it first: whether each member that was
// ever added is in it.
type model map[string]map[string]bool

// do does one random thing to a set and returns the command and its reply.
func (m model) do(r *rand.Rand) (command []string, reply string) {
	k := "s" + fmt.Sprint(r.IntN(3))
	if m[k] == nil {
		m[k] = make(map[string]bool)
	}
	n := 0
	command = []string{[]string{"SADD", "SADD", "SREM"}[r.IntN(3)], k}
	for range 1 + r.IntN(30) {
		v := fmt.Sprint(r.IntN(200))
		command = append(command, v)
		if m[k][v] == (command[0] == "SREM") {
			n++
		}
		m[k][v] = command[0] == "SADD"
	}
	return command, fmt.Sprintf(":%d\r\n", n)
}

// requireState compares everything that is there.
func (m model) requireState(t *testing.T, c *inproc.Client) {
	t.Helper()
	for k, s := range m {
		n := 0
		for v, in := range s {
			if in {
				n++
			}
			require.Equal(t, map[bool]string{true: ":1\r\n", false: ":0\r\n"}[in], c.Do("SISMEMBER", k, v), "%s %s", k, v)
		}
		require.Equal(t, fmt.Sprintf(":%d\r\n", n), c.Do("SCARD", k), k)
	}
}

// TestSetsAgainstAModel: thousands of random commands are answered as by a model, and after each
// of a few restarts all is what it was.
func TestSetsAgainstAModel(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		r := rand.New(rand.NewPCG(6, 5))
		m := model{}
		s := w.Start("--appendonly", "yes")
		for range 4 {
			c := s.Dial()
			m.requireState(t, c)
			var history []string
			for range 750 {
				command, reply := m.do(r)
				history = append(history, strings.Join(command, " "))
				require.Equal(t, reply, c.Do(command...), "%v", history[max(0, len(history)-10):])
			}
			m.requireState(t, c)
			require.NoError(t, s.Stop())
			s.Restart()
		}
	})
}

// TestFullMemory: a set stops growing when memory is full, and what makes it smaller still works.
func TestFullMemory(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start("--maxmemory", "2mb").Dial()
		value := strings.Repeat("v", 1000)
		reply := ""
		for i := 0; i < 10_000 && reply != inproc.OOM; i++ {
			reply = c.Do("SADD", "k", value+fmt.Sprint(i))
			require.True(t, reply == inproc.OOM || reply[0] == ':', reply)
		}
		require.Equal(t, inproc.OOM, reply)
		require.Equal(t, inproc.OOM, c.Do("SADD", "k", "one more"))
		require.Equal(t, inproc.OOM, c.Do("SADD", "another", value))
		require.Equal(t, ":1\r\n", c.Do("SREM", "k", value+"0"))
		require.Equal(t, ":1\r\n", c.Do("DEL", "k"))
		require.Equal(t, ":1\r\n", c.Do("SADD", "k", "again"))
	})
}

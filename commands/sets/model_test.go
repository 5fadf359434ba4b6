package sets_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// model is a simple model of sets, by key: whether each member that was ever added is in the set.
type model map[string]map[string]bool

// Do makes a random call about a set and returns the command and the expected reply.
func (m model) Do(r *rand.Rand) (command []string, reply string) {
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

// RequireState compares all sets.
func (m model) RequireState(t *testing.T, c *inproc.Client) {
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

// TestSetsAgainstAModel: thousands of random commands have the replies of the model, and after
// each of a few restarts the sets are unchanged.
func TestSetsAgainstAModel(t *testing.T) { inproc.AgainstModel(t, model{}) }

// TestFullMemory: a set stops growing when memory is full, and commands that shrink it still
// work.
func TestFullMemory(t *testing.T) { inproc.FullMemory(t, "SADD", "SREM", "k") }

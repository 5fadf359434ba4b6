package lists_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// model is a simple model of lists, by key.
type model map[string][]string

// Do makes a random call about a list and returns the command and the expected reply.
func (m model) Do(r *rand.Rand) (command []string, reply string) {
	k := "l" + fmt.Sprint(r.IntN(3))
	l, v := m[k], fmt.Sprint(r.IntN(20))
	switch r.IntN(7) {
	case 0, 1:
		values := slices.Repeat([]string{v, v + "!"}, 1+r.IntN(30))
		m[k] = append(slices.Clone(l), values...)
		return append([]string{"RPUSH", k}, values...), fmt.Sprintf(":%d\r\n", len(m[k]))
	case 2:
		m[k] = append([]string{v}, l...)
		return []string{"LPUSH", k, v}, fmt.Sprintf(":%d\r\n", len(m[k]))
	case 3:
		if len(l) == 0 {
			return []string{"RPOP", k}, "$-1\r\n"
		}
		m[k] = l[:len(l)-1]
		return []string{"RPOP", k}, inproc.Bulk(l[len(l)-1])
	case 4:
		n := 0
		m[k] = slices.DeleteFunc(slices.Clone(l), func(e string) bool {
			if e == v {
				n++
			}
			return e == v
		})
		return []string{"LREM", k, "0", v}, fmt.Sprintf(":%d\r\n", n)
	case 5:
		from, to := min(r.IntN(40), len(l)), min(r.IntN(150), len(l))
		m[k] = slices.Clone(l[from:max(from, to)])
		return []string{"LTRIM", k, fmt.Sprint(from), fmt.Sprint(to - 1 - len(l))}, inproc.OK
	}
	if len(l) == 0 {
		return []string{"LSET", k, "0", v}, "-ERR no such key\r\n"
	}
	i := r.IntN(len(l))
	m[k] = slices.Clone(l)
	m[k][i] = v
	return []string{"LSET", k, fmt.Sprint(i - len(l)), v}, inproc.OK
}

// RequireState compares all lists.
func (m model) RequireState(t *testing.T, c *inproc.Client) {
	t.Helper()
	for k, l := range m {
		var want []string
		for _, v := range l {
			want = append(want, inproc.Bulk(v))
		}
		require.Equal(t, inproc.Array(want...), c.Do("LRANGE", k, "0", "-1"), k)
	}
}

// TestListsAgainstAModel: thousands of random commands have the replies of the model, and after
// each of a few restarts the lists are unchanged.
func TestListsAgainstAModel(t *testing.T) { inproc.AgainstModel(t, model{}) }

// TestFullMemory: a list stops growing when memory is full, and commands that shrink it still
// work.
func TestFullMemory(t *testing.T) { inproc.FullMemory(t, "RPUSH", "LREM", "k", "0") }

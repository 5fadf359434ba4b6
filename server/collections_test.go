package server_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rowModel is what lists and sets are, as one would write it first.
type rowModel struct {
	lists map[string][]string
	sets  map[string]map[string]bool
}

// list does one random thing to a list and returns the command and its reply.
func (m *rowModel) list(r *rand.Rand) (command []string, reply string) {
	k := "l" + fmt.Sprint(r.IntN(3))
	l, v := m.lists[k], fmt.Sprint(r.IntN(20))
	switch r.IntN(7) {
	case 0, 1:
		values := slices.Repeat([]string{v, v + "!"}, 1+r.IntN(30))
		m.lists[k] = append(slices.Clone(l), values...)
		return append([]string{"RPUSH", k}, values...), fmt.Sprintf(":%d\r\n", len(m.lists[k]))
	case 2:
		m.lists[k] = append([]string{v}, l...)
		return []string{"LPUSH", k, v}, fmt.Sprintf(":%d\r\n", len(m.lists[k]))
	case 3:
		if len(l) == 0 {
			return []string{"RPOP", k}, "$-1\r\n"
		}
		m.lists[k] = l[:len(l)-1]
		return []string{"RPOP", k}, bulk(l[len(l)-1])
	case 4:
		n := 0
		m.lists[k] = slices.DeleteFunc(slices.Clone(l), func(e string) bool {
			if e == v {
				n++
			}
			return e == v
		})
		return []string{"LREM", k, "0", v}, fmt.Sprintf(":%d\r\n", n)
	case 5:
		from, to := min(r.IntN(40), len(l)), min(r.IntN(150), len(l))
		m.lists[k] = slices.Clone(l[from:max(from, to)])
		return []string{"LTRIM", k, fmt.Sprint(from), fmt.Sprint(to - 1 - len(l))}, "+OK\r\n"
	}
	if len(l) == 0 {
		return []string{"LSET", k, "0", v}, "-ERR no such key\r\n"
	}
	i := r.IntN(len(l))
	m.lists[k] = slices.Clone(l)
	m.lists[k][i] = v
	return []string{"LSET", k, fmt.Sprint(i - len(l)), v}, "+OK\r\n"
}

// set does one random thing to a set and returns the command and its reply.
func (m *rowModel) set(r *rand.Rand) (command []string, reply string) {
	k := "s" + fmt.Sprint(r.IntN(3))
	if m.sets[k] == nil {
		m.sets[k] = make(map[string]bool)
	}
	n := 0
	command = []string{[]string{"SADD", "SADD", "SREM"}[r.IntN(3)], k}
	for range 1 + r.IntN(30) {
		v := fmt.Sprint(r.IntN(200))
		command = append(command, v)
		if m.sets[k][v] == (command[0] == "SREM") {
			n++
		}
		m.sets[k][v] = command[0] == "SADD"
	}
	return command, fmt.Sprintf(":%d\r\n", n)
}

// requireState compares everything that is there.
func (m *rowModel) requireState(t *testing.T, c *client) {
	t.Helper()
	for k, l := range m.lists {
		var want []string
		for _, v := range l {
			want = append(want, bulk(v))
		}
		require.Equal(t, array(want...), c.do("LRANGE", k, "0", "-1"), k)
	}
	for k, s := range m.sets {
		n := 0
		for v, in := range s {
			if in {
				n++
			}
			require.Equal(t, map[bool]string{true: ":1\r\n", false: ":0\r\n"}[in], c.do("SISMEMBER", k, v), "%s %s", k, v)
		}
		require.Equal(t, fmt.Sprintf(":%d\r\n", n), c.do("SCARD", k), k)
	}
}

// TestListsAndSetsAgainstAModel: thousands of random commands are answered as by a
// model, and after each of a few restarts all is what it was.
func TestListsAndSetsAgainstAModel(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 5))
	m := &rowModel{make(map[string][]string), make(map[string]map[string]bool)}
	dir := t.TempDir()
	for range 4 {
		f := start(t, "auto", "--dir", dir, "--appendonly", "yes")
		eventually(t, "loaded", func() bool { return !f.Engine().Loading() })
		c := f.dial()
		m.requireState(t, c)
		var history []string
		for range 1500 {
			turn := []func(*rand.Rand) ([]string, string){m.list, m.set}[r.IntN(2)]
			command, reply := turn(r)
			history = append(history, strings.Join(command, " "))
			require.Equal(t, reply, c.do(command...), "%v", history[max(0, len(history)-10):])
		}
		m.requireState(t, c)
		f.end()
	}
}

// TestFullMemoryAndCollections: a list and a set stop growing when memory is full, and
// what makes them smaller still works.
func TestFullMemoryAndCollections(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--maxmemory", "2mb")
		c := f.dial()
		const oom = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
		value := strings.Repeat("v", 1000)
		for add, remove := range map[string][]string{"RPUSH": {"LREM", "k", "0"}, "SADD": {"SREM", "k"}} {
			reply := ""
			for i := 0; i < 10_000 && reply != oom; i++ {
				reply = c.do(add, "k", value+fmt.Sprint(i))
				require.True(t, reply == oom || reply[0] == ':', reply)
			}
			require.Equal(t, oom, reply)
			require.Equal(t, oom, c.do(add, "k", "one more"))
			require.Equal(t, oom, c.do(add, "another", value))
			require.Equal(t, ":1\r\n", c.do(append(remove, value+"0")...))
			require.Equal(t, ":1\r\n", c.do("DEL", "k"))
			require.Equal(t, ":1\r\n", c.do(add, "k", "again"))
			require.Equal(t, ":1\r\n", c.do("DEL", "k"))
		}
	})
}

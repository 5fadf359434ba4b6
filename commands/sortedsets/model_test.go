package sortedsets_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// model is a map that is sorted for each read.
type model map[string]int

func (m model) sorted() []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(m[a], m[b]), strings.Compare(a, b))
	})
}

// between returns the members whose scores are from low to high.
func (m model) between(low, high string) []string {
	from, _ := strconv.Atoi(low)
	to, _ := strconv.Atoi(high)
	return slices.DeleteFunc(m.sorted(), func(e string) bool { return m[e] < from || m[e] > to })
}

// remove removes members and returns their number.
func (m model) remove(members []string) string {
	n := len(m)
	for _, e := range members {
		delete(m, e)
	}
	return strconv.Itoa(n - len(m))
}

// do runs a command on the model and returns the encoded reply.
func (m model) do(command []string) string {
	args := command[2:]
	switch command[0] {
	case "ZADD":
		n := len(m)
		for i := 0; i < len(args); i += 2 {
			m[args[i+1]], _ = strconv.Atoi(args[i])
		}
		return strconv.Itoa(len(m) - n)
	case "ZINCRBY":
		by, _ := strconv.Atoi(args[0])
		m[args[1]] += by
		return fmt.Sprintf("%q", strconv.Itoa(m[args[1]]))
	case "ZREM":
		return m.remove(args)
	case "ZRANK":
		if _, ok := m[args[0]]; !ok {
			return "null"
		}
		return strconv.Itoa(slices.Index(m.sorted(), args[0]))
	case "ZCOUNT":
		return strconv.Itoa(len(m.between(args[0], args[1])))
	case "ZREMRANGEBYSCORE":
		return m.remove(m.between(args[0], args[1]))
	case "ZRANGEBYSCORE":
		found := m.between(args[0], args[1])
		return fmt.Sprintf("[%s]", quoted(found[min(2, len(found)):min(5, len(found))]))
	}
	// ZREMRANGEBYRANK key 0 to
	to, _ := strconv.Atoi(args[1])
	return m.remove(m.sorted()[:min(to+1, len(m))])
}

func quoted(words []string) string {
	var all []string
	for _, w := range words {
		all = append(all, strconv.Quote(w))
	}
	return strings.Join(all, ", ")
}

// randomCommand returns a call about one sorted set.
func randomCommand(r *rand.Rand) []string {
	member := func() string { return "m" + strconv.Itoa(r.IntN(300)) }
	score := func() string { return strconv.Itoa(r.IntN(400)) }
	switch r.IntN(12) {
	case 0, 1, 2, 3:
		command := []string{"ZADD", "z"}
		for range 1 + r.IntN(30) {
			command = append(command, score(), member())
		}
		return command
	case 4:
		return []string{"ZINCRBY", "z", score(), member()}
	case 5:
		command := []string{"ZREM", "z"}
		for range 1 + r.IntN(20) {
			command = append(command, member())
		}
		return command
	case 6:
		return []string{"ZREMRANGEBYSCORE", "z", score(), score()}
	case 7:
		return []string{"ZREMRANGEBYRANK", "z", "0", strconv.Itoa(r.IntN(60))}
	case 8:
		return []string{"ZCOUNT", "z", score(), score()}
	case 9:
		return []string{"ZRANGEBYSCORE", "z", score(), score(), "LIMIT", "2", "3"}
	}
	return []string{"ZRANK", "z", member()}
}

// TestSortedSetsAgainstAMap compares a sorted set with a map while it grows and shrinks, and all
// elements in between, with a bound that is reached.
func TestSortedSetsAgainstAMap(t *testing.T) {
	const most = 150
	for seed := range uint64(effort.Steps(3, 12)) {
		s, err := inproc.Feed(inproc.Epoch, "--collection-max-elements", strconv.Itoa(most))
		require.NoError(t, err)
		r := rand.New(rand.NewPCG(seed, 3))
		m := model{}
		refused := 0
		for range 500 {
			command := randomCommand(r)
			after := maps.Clone(m)
			want := after.do(command)
			got, err := s.Value(command...)
			require.NoError(t, err)
			if len(after) > most && len(after) > len(m) {
				refused++
				require.Equal(t, fmt.Sprintf("ERR the collection is full, at most %d elements", most), got.Text, "%q", command)
			} else {
				require.Equal(t, want, got.String(), "%q", command)
				m = after
			}
			all, err := s.Value("ZRANGE", "z", "0", "-1")
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("[%s]", quoted(m.sorted())), all.String(), "after %q", command)
			exists, err := s.Value("EXISTS", "z")
			require.NoError(t, err)
			require.Equal(t, len(m) > 0, exists.Int == 1)
		}
		require.Positive(t, refused)
		s.Close()
	}
}

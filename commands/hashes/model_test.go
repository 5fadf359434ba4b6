package hashes_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// model is a map that answers like a hash.
type model map[string]string

// do runs a command on the model and returns the encoded reply.
func (m model) do(command []string) string {
	args := command[2:]
	n := 0
	switch command[0] {
	case "HSET":
		for i := 0; i < len(args); i += 2 {
			if _, ok := m[args[i]]; !ok {
				n++
			}
			m[args[i]] = args[i+1]
		}
	case "HSETNX":
		if _, ok := m[args[0]]; !ok {
			m[args[0]] = args[1]
			n++
		}
	case "HDEL":
		for _, field := range args {
			if _, ok := m[field]; ok {
				delete(m, field)
				n++
			}
		}
	case "HEXISTS":
		if _, ok := m[args[0]]; ok {
			n++
		}
	case "HLEN":
		n = len(m)
	case "HSTRLEN":
		n = len(m[args[0]])
	case "HINCRBY":
		was, err := strconv.Atoi(m[args[0]])
		by, _ := strconv.Atoi(args[1])
		if _, exists := m[args[0]]; exists && (err != nil || strconv.Itoa(was) != m[args[0]]) {
			return `-"ERR hash value is not an integer"`
		}
		m[args[0]] = strconv.Itoa(was + by)
		n = was + by
	case "HGET":
		if value, ok := m[args[0]]; ok {
			return fmt.Sprintf("%q", value)
		}
		return "null"
	}
	return strconv.Itoa(n)
}

// TestHashesAgainstAMap compares hashes with a map while they grow and shrink, and all elements
// in between, with a bound that is reached.
func TestHashesAgainstAMap(t *testing.T) {
	const most = 120
	for seed := range uint64(effort.Steps(5, 20)) {
		s, err := inproc.Feed(inproc.Epoch, "--collection-max-elements", strconv.Itoa(most))
		require.NoError(t, err)
		r := rand.New(rand.NewPCG(seed, 2))
		m := model{}
		for range 600 {
			command := randomCommand(r)
			fresh := map[string]bool{}
			if command[0] == "HSET" || command[0] == "HSETNX" || command[0] == "HINCRBY" {
				for i := 2; i < len(command); i += 2 {
					if _, ok := m[command[i]]; !ok {
						fresh[command[i]] = true
					}
				}
			}
			got, err := s.Value(command...)
			require.NoError(t, err)
			if len(fresh) > 0 && len(m)+len(fresh) > most {
				require.Equal(t, fmt.Sprintf("ERR the collection is full, at most %d elements", most), got.Text, "%q", command)
			} else {
				require.Equal(t, m.do(command), got.String(), "%q", command)
			}
			all, err := s.Value("HGETALL", "h")
			require.NoError(t, err)
			found := model{}
			for i := 0; i < len(all.Elems); i += 2 {
				found[all.Elems[i].Text] = all.Elems[i+1].Text
			}
			require.Equal(t, m, found, "after %q", command)
			exists, err := s.Value("EXISTS", "h")
			require.NoError(t, err)
			require.Equal(t, len(m) > 0, exists.Int == 1)
		}
		s.Close()
	}
}

// randomCommand returns a call about one hash.
func randomCommand(r *rand.Rand) []string {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	field := func() string { return "f" + strconv.Itoa(r.IntN(200)) }
	switch r.IntN(10) {
	case 0, 1, 2:
		command := []string{"HSET", "h"}
		for range 1 + r.IntN(12) {
			command = append(command, field(), one("1", "-7", "01", "text", ""))
		}
		return command
	case 3:
		command := []string{"HDEL", "h"}
		for range 1 + r.IntN(20) {
			command = append(command, field())
		}
		return command
	case 4:
		return []string{"HSETNX", "h", field(), "12"}
	case 5:
		return []string{"HINCRBY", "h", field(), strconv.Itoa(r.IntN(9) - 4)}
	case 6:
		return []string{"HLEN", "h"}
	}
	return []string{one("HGET", "HEXISTS", "HSTRLEN"), "h", field()}
}

//go:build real

package compat_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/script"
)

// elements are so few that the same come again.
func (r roulette) elements() (all []string) {
	for range []int{1, 2, 40}[r.IntN(3)] {
		all = append(all, r.one("a", "b", "c", "", fmt.Sprint(r.IntN(150)), strings.Repeat("x", r.IntN(60))))
	}
	return all
}

func (r roulette) index() string {
	if r.IntN(4) == 0 {
		return r.number()
	}
	return fmt.Sprint(r.IntN(12) - 6)
}

// listCommand is a call of one of the commands of lists.
func (r roulette) listCommand() []string {
	k := r.one("a", "b", "c", "string")
	end := func() string { return r.word(r.one("LEFT", "RIGHT")) }
	switch r.IntN(18) {
	case 0, 1, 2:
		return append([]string{r.one("LPUSH", "RPUSH", "LPUSHX", "RPUSHX"), k}, r.elements()...)
	case 3, 4:
		return []string{r.one("LPOP", "RPOP"), k}
	case 5:
		return []string{r.one("LPOP", "RPOP"), k, r.index()}
	case 6:
		return []string{"LLEN", k}
	case 7, 8:
		return []string{"LINDEX", k, r.index()}
	case 9, 10:
		return []string{"LRANGE", k, r.index(), r.index()}
	case 11:
		return []string{"LSET", k, r.index(), r.elements()[0]}
	case 12:
		return []string{"LREM", k, r.index(), r.elements()[0]}
	case 13:
		return []string{"LTRIM", k, r.one("0", "1", "-60", r.index()), r.one("-1", "-2", "60", r.index())}
	case 14:
		return []string{"LMOVE", k, r.one("a", "b", "string"), end(), r.one(end(), end(), end(), "UP")}
	case 15:
		return []string{"RPOPLPUSH", k, r.one("a", "b", "string")}
	case 16:
		if r.IntN(10) == 0 {
			return []string{"DEL", k}
		}
		return []string{"RENAME", r.one("a", "b"), r.one("a", "b", "c")}
	}
	return []string{"LRANGE", k, "0", "-1"}
}

// setCommand returns a call of one of the set commands, without those whose reply is random.
func (r roulette) setCommand() []string {
	k := r.one("a", "b", "c", "string")
	switch r.IntN(12) {
	case 0, 1, 2:
		return append([]string{"SADD", k}, r.elements()...)
	case 3, 4:
		return append([]string{"SREM", k}, r.elements()...)
	case 5:
		return []string{"SISMEMBER", k, r.elements()[0]}
	case 6:
		return append([]string{"SMISMEMBER", k}, r.elements()...)
	case 7:
		return []string{"SCARD", k}
	case 8:
		return []string{"SSCAN", k, r.one("0", "0", "x"), r.one("MATCH", "match", "bogus"), r.one("*", "x*", "[0-9]?", "a"), "COUNT", r.one("1000", "0", "x")}
	case 9:
		return []string{r.one("SPOP", "SRANDMEMBER", "SRANDMEMBER"), k, r.one("0", "1000", "x", "1.5")}
	case 10:
		if r.IntN(10) == 0 {
			return []string{"DEL", k}
		}
		return []string{"RENAME", r.one("a", "b"), r.one("a", "b", "c")}
	}
	return []string{"SMEMBERS", k}
}

// sorted puts the members of a set in order, which has none.
func sorted(command string, v script.Value) script.Value {
	switch {
	case len(v.Elems) == 0:
	case command == "SSCAN":
		v.Elems = []script.Value{v.Elems[0], sorted("SMEMBERS", v.Elems[1])}
	case command == "SMEMBERS", command == "SPOP", command == "SRANDMEMBER":
		v.Elems = slices.Clone(v.Elems)
		slices.SortFunc(v.Elems, func(a, b script.Value) int { return strings.Compare(a.Text, b.Text) })
	}
	return v
}

// TestListsAndSetsAgainstRedis tells Redis and us the same thousands of random
// commands.
func TestListsAndSetsAgainstRedis(t *testing.T) {
	commands := map[string]func(r roulette) []string{"lists": roulette.listCommand, "sets": roulette.setCommand}
	for kind, command := range commands {
		for _, proto := range []string{"2", "3"} {
			t.Run(kind+"/RESP"+proto, func(t *testing.T) {
				t.Parallel()
				w := startTwins(t, proto)
				for round := range uint64(40) {
					r := roulette{rand.New(rand.NewPCG(round, 2))}
					w.ask(t, "FLUSHALL")
					w.ask(t, "SET", "string", "v")
					var history []string
					for range 250 {
						c := command(r)
						theirs, ours := w.ask(t, c...)
						require.Equal(t, sorted(c[0], theirs), sorted(c[0], ours), "%.300q, after %s", c, strings.Join(history, "\n"))
						history = append(history, fmt.Sprintf("%.200q", c))
					}
				}
			})
		}
	}
}

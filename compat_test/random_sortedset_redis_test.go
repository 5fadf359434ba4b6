//go:build real

package compat_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSortedSetsAgainstRedis tells Redis and us the same thousands of random commands.
func TestSortedSetsAgainstRedis(t *testing.T) {
	for _, proto := range []string{"2", "3"} {
		t.Run("RESP"+proto, func(t *testing.T) {
			t.Parallel()
			w := startTwins(t, proto)
			for round := range uint64(200) {
				r := roulette{rand.New(rand.NewPCG(round, 1))}
				w.ask(t, "FLUSHALL")
				w.makeHash(t, "collection")
				var history []string
				for range 60 {
					command := r.sortedSetCommand()
					w.same(t, history, command...)
					history = append(history, fmt.Sprintf("%.200q", command))
				}
				for _, key := range []string{"a", "b", "c", "lex", "collection"} {
					w.same(t, history, "ZRANGE", key, "0", "-1", "WITHSCORES")
				}
			}
		})
	}
}

// TestScoresAgainstRedis spells and reads random doubles as Redis does.
func TestScoresAgainstRedis(t *testing.T) {
	w := startTwins(t, "2")
	r := roulette{rand.New(rand.NewPCG(7, 7))}
	for range 20_000 {
		score := r.anyScore()
		theirs, ours := w.ask(t, "ZADD", "k", score, "m")
		require.Equal(t, theirs, ours, "%.100q", score)
		theirs, ours = w.ask(t, "ZSCORE", "k", "m")
		require.Equal(t, theirs, ours, "%.100q", score)
		theirs, ours = w.ask(t, "ZINCRBY", "k", score, "m")
		require.Equal(t, theirs, ours, "%.100q", score)
	}
}

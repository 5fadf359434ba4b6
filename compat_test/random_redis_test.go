//go:build real

package compat_test

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/programs"
	"github.com/cellserver/cellserver/internal/script"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/lua/value"
	"github.com/cellserver/cellserver/resp"
)

// twins are a Redis and a cellserver that get the same commands.
type twins struct {
	redis net.Conn
	in    *bufio.Reader
	ours  *inproc.Session
}

// startTwins starts both, and skips the test without a redis-server of version 7,
// which is a failure in CI.
func startTwins(t *testing.T, proto string) *twins {
	t.Helper()
	if version := redisVersion(); !strings.HasPrefix(version, "7.") {
		programs.Missing(t, "no redis-server 7 on the path, but version %q", version)
	}
	conn, err := startRedis(t)()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	ours, err := inproc.Feed(limit.Instant(time.Now().UnixNano()), "--dir", t.TempDir())
	require.NoError(t, err)
	t.Cleanup(ours.Close)
	w := &twins{redis: conn, in: bufio.NewReader(conn), ours: ours}
	w.ask(t, "HELLO", proto)
	return w
}

// ask sends a command to both.
func (w *twins) ask(t *testing.T, command ...string) (theirs, ours script.Value) {
	t.Helper()
	_, err := w.redis.Write(inproc.Encode(nil, command...))
	require.NoError(t, err)
	theirs, err = script.ReadValue(w.in)
	require.NoError(t, err)
	out, err := w.ours.Do(command...)
	require.NoError(t, err, "%q", command)
	ours, err = script.ReadValue(bufio.NewReader(bytes.NewReader(out)))
	require.NoError(t, err, "%q", command)
	return as72(theirs), as72(ours)
}

// as72 spells numbers of 17 digits, as Redis 7.0 answers doubles, with the fewest that read back, as Redis
// 7.2 and we do.
func as72(v script.Value) script.Value {
	for i := range v.Elems {
		v.Elems[i] = as72(v.Elems[i])
	}
	if f, err := strconv.ParseFloat(v.Text, 64); err == nil && string(value.AppendG(nil, f, 17)) == v.Text {
		v.Text = string(resp.AppendDouble(nil, f))
	}
	return v
}

// makeHash makes key a hash, for commands to find a wrong type.
func (w *twins) makeHash(t *testing.T, key string) {
	t.Helper()
	_, err := w.redis.Write(inproc.Encode(nil, "HSET", key, "field", "value"))
	require.NoError(t, err)
	_, err = script.ReadValue(w.in)
	require.NoError(t, err)
	v := w.ours.Server().Keyspace().NewHandle()
	defer v.Close()
	require.NoError(t, v.WriteHash(0, []byte(key), func(h *collection.Hash) error {
		_, err := h.Set([]byte("field"), []byte("value"))
		return err
	}))
}

// same sends a command to both and expects the same reply.
func (w *twins) same(t *testing.T, history []string, command ...string) {
	t.Helper()
	theirs, ours := w.ask(t, command...)
	require.Equal(t, theirs, ours, "%.300q, after %s", command, strings.Join(history, "\n"))
}

// sameState compares what all keys hold, and when they end to a hundred seconds.
func (w *twins) sameState(t *testing.T, history []string, keys ...string) {
	t.Helper()
	for _, key := range keys {
		w.same(t, history, "TYPE", key)
		w.same(t, history, "GET", key)
		theirs, ours := w.ask(t, "TTL", key)
		const untilOurEnd = 7_000_000_000 // our time ends in 2262
		if theirs.Int != ours.Int && ours.Int < untilOurEnd {
			require.InDelta(t, theirs.Int, ours.Int, 100, "TTL of %s, after %s", key, strings.Join(history, "\n"))
			require.Positive(t, ours.Int)
		}
	}
}

// TestStringsAgainstRedis tells Redis and us the same thousands of random commands.
func TestStringsAgainstRedis(t *testing.T) {
	for _, proto := range []string{"2", "3"} {
		t.Run("RESP"+proto, func(t *testing.T) {
			t.Parallel()
			w := startTwins(t, proto)
			for round := range uint64(150) {
				r := roulette{rand.New(rand.NewPCG(round, 0))}
				w.ask(t, "FLUSHALL")
				w.makeHash(t, "collection")
				var history []string
				for range 60 {
					command := r.stringCommand()
					w.same(t, history, command...)
					history = append(history, fmt.Sprintf("%.200q", command))
				}
				w.sameState(t, history, "a", "b", "c", "d", "collection")
			}
		})
	}
}

// unordered sorts the elements of a reply about a whole hash, since large hashes of Redis have
// another order.
func unordered(command string, v script.Value) script.Value {
	size := map[string]int{"HGETALL": 2, "HKEYS": 1, "HVALS": 1}[command]
	if size == 0 || len(v.Elems) == 0 {
		return v
	}
	parts := slices.Collect(slices.Chunk(v.Elems, size))
	slices.SortFunc(parts, func(a, b []script.Value) int {
		return cmp.Or(strings.Compare(a[0].Text, b[0].Text), strings.Compare(a[size-1].Text, b[size-1].Text))
	})
	v.Elems = slices.Concat(parts...)
	return v
}

// TestHashesAgainstRedis tells Redis and us the same thousands of random commands.
func TestHashesAgainstRedis(t *testing.T) {
	for _, proto := range []string{"2", "3"} {
		t.Run("RESP"+proto, func(t *testing.T) {
			t.Parallel()
			w := startTwins(t, proto)
			for round := range uint64(60) {
				r := roulette{rand.New(rand.NewPCG(round, 1))}
				w.ask(t, "FLUSHALL")
				w.ask(t, "SET", "string", "v")
				var history []string
				for range 250 {
					command := r.hashCommand()
					theirs, ours := w.ask(t, command...)
					require.Equal(t, unordered(command[0], theirs), unordered(command[0], ours),
						"%.300q, after %s", command, strings.Join(history, "\n"))
					history = append(history, fmt.Sprintf("%.200q", command))
				}
			}
		})
	}
}

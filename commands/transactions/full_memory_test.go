package transactions_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/internal/inproc"
)

const execOOM = "-EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.\r\n"

// fullSession returns a session of a server with two keys, and bound, which sets its maxmemory.
func fullSession(fatal func(error)) (do func(args ...string) string, bound func(most int64), end func()) {
	s, err := inproc.Feed(inproc.Epoch)
	fatal(err)
	do = func(args ...string) string {
		reply, err := s.Do(args...)
		fatal(err)
		return string(reply)
	}
	do("SET", "stock", "10")
	do("CL.THROTTLE", "known", "9", "1", "60")
	return do, s.Server().Keyspace().SetMaxMemory, s.Close
}

// TestExecUnderFullMemoryAppliesNothing: a transaction that lacks memory in any way has no
// effect.
func TestExecUnderFullMemoryAppliesNothing(t *testing.T) {
	const write = "return redis.call('SET', KEYS[1], 'v')"
	throttle := func(key string) []string { return []string{"CL.THROTTLE", key, "9", "1", "60"} }
	for name, c := range map[string]struct {
		fullAt  int // the index of the command before which memory becomes full
		queue   [][]string
		replies []string // to queued commands whose reply is not QUEUED
		exec    string
	}{
		"when queued": {
			0, [][]string{{"DECRBY", "stock", "1"}, {"SET", "order", "1"}}, []string{inproc.OOM, inproc.OOM}, inproc.ExecAbort,
		},
		"in between": {
			1, [][]string{{"DECRBY", "stock", "1"}, {"SET", "order", "1"}}, []string{inproc.Queued, inproc.OOM}, inproc.ExecAbort,
		},
		"behind the queue": {
			2, [][]string{{"DECRBY", "stock", "1"}, {"SET", "order", "1"}}, nil, execOOM,
		},
		"a new limiter": {
			0, [][]string{{"DEL", "stock"}, throttle("new")}, nil, execOOM,
		},
		"a new limiter among several": {
			0, [][]string{{"DEL", "stock"}, {"RL.MULTI", "2", "known", "new", "TB", "9", "1", "60", "CL", "9", "1", "60"}}, nil, execOOM,
		},
		"a new limiter elsewhere": {
			0, [][]string{{"DEL", "stock"}, {"SELECT", "1"}, throttle("known")}, nil, execOOM,
		},
		"a script": {
			0, [][]string{{"DEL", "stock"}, {"EVAL", write, "1", "order"}}, nil, execOOM,
		},
	} {
		t.Run(name, func(t *testing.T) {
			do, bound, end := fullSession(func(err error) { require.NoError(t, err) })
			defer end()
			do("MULTI")
			for i, args := range c.queue {
				if i == c.fullAt {
					bound(1)
				}
				want := inproc.Queued
				if c.replies != nil {
					want = c.replies[i]
				}
				require.Equal(t, want, do(args...))
			}
			bound(1)
			require.Equal(t, c.exec, do("EXEC"))
			require.Equal(t, "$2\r\n10\r\n", do("GET", "stock"))
			require.Equal(t, ":2\r\n", do("DBSIZE"))
			require.Equal(t, "-ERR EXEC without MULTI\r\n", do("EXEC"))
		})
	}
}

// TestExecUnderFullMemoryGoesOnWithWhatNeedsNone: with full memory a transaction may have the
// commands that are allowed outside of one: calls of existing limiters, and commands that free
// memory.
func TestExecUnderFullMemoryGoesOnWithWhatNeedsNone(t *testing.T) {
	do, bound, end := fullSession(func(err error) { require.NoError(t, err) })
	defer end()
	bound(1)
	do("MULTI")
	for _, args := range [][]string{
		{"CL.THROTTLE", "known", "9", "1", "60"},
		{"DEL", "known"},
		{"CL.THROTTLE", "known", "9", "1", "60"}, // the key exists, so it needs no memory
		{"GET", "stock"},
		{"EVAL", "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])", "1", "stock"},
		{"EVAL", "#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], '11')", "1", "stock"},
		{"DEL", "stock"},
	} {
		require.Equal(t, inproc.Queued, do(args...))
	}
	reply := do("EXEC")
	require.True(t, strings.HasPrefix(reply, "*7\r\n"), reply)
	require.NotContains(t, reply, "OOM")
	require.Equal(t, ":1\r\n", do("DBSIZE"))
}

// TestMemoryThatFillsMeanwhileFailsNothing: a command or transaction that has begun completes
// although memory becomes full meanwhile.
func TestMemoryThatFillsMeanwhileFailsNothing(t *testing.T) {
	for name, run := range map[string]func(do func(args ...string) string) string{
		"EXEC": func(do func(args ...string) string) string {
			do("MULTI")
			for i := range 100 {
				do("SET", "k"+strconv.Itoa(i), strings.Repeat("x", 10_000))
			}
			return do("EXEC")
		},
		"EVAL": func(do func(args ...string) string) string {
			return do("EVAL", "for i = 1, 100 do redis.call('SET', 'k'..i, string.rep('x', 10000)) end", "0")
		},
		"RL.MULTI": func(do func(args ...string) string) string {
			args := []string{"RL.MULTI", "100"}
			for i := range 100 {
				args = append(args, "k"+strconv.Itoa(i))
			}
			for range 100 {
				args = append(args, "SW", "9", "60")
			}
			return do(args...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			do, bound, end := fullSession(func(err error) { require.NoError(t, err) })
			defer end()
			used := usedMemory(t, do)
			bound(used + 1)
			require.NotContains(t, run(do), "OOM")
			require.Equal(t, ":102\r\n", do("DBSIZE"))
			require.Equal(t, inproc.OOM, do("SET", "another", "v"), "it is full now")
		})
	}
}

// usedMemory returns the memory of keys.
func usedMemory(t require.TestingT, do func(args ...string) string) int64 {
	_, field, found := strings.Cut(do("INFO", "memory"), "\nused_memory_dataset:")
	require.True(t, found)
	digits, _, _ := strings.Cut(field, "\r")
	n, err := strconv.ParseInt(digits, 10, 64)
	require.NoError(t, err)
	return n
}

// TestTransactionsApplyAllOrNothing: of random transactions under random bounds none is applied
// in part because memory is full.
func TestTransactionsApplyAllOrNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		do, bound, end := fullSession(func(err error) { require.NoError(t, err) })
		defer end()
		key := func(label string) string { return "k" + strconv.Itoa(rapid.IntRange(0, 5).Draw(t, label)) }
		value := func() string { return strings.Repeat("v", rapid.IntRange(0, 3000).Draw(t, "length")) }
		for range rapid.IntRange(0, 3).Draw(t, "strings") {
			do("SET", key("string"), value())
		}
		bound(usedMemory(t, do) + int64(rapid.IntRange(-2000, 6000).Draw(t, "room")))
		state := func() string {
			out := do("DBSIZE") + do("MGET", "k0", "k1", "k2", "k3", "k4", "k5")
			for i := range 6 {
				k := "k" + strconv.Itoa(i)
				out += do("TYPE", k) + do("LRANGE", k, "0", "-1") + do("HGETALL", k) + do("PTTL", k)
			}
			return out
		}
		before := state()
		do("MULTI")
		for range rapid.IntRange(1, 6).Draw(t, "commands") {
			k := key("key")
			do(rapid.SampledFrom([][]string{
				{"SET", k, value()},
				{"APPEND", k, value()},
				{"RPUSH", "l" + k, value()},
				{"HSET", "h" + k, "f", value()},
				{"INCR", k},
				{"DEL", k},
				{"CL.THROTTLE", "c" + k, "9", "1", "60"},
				{"SW.ALLOW", "s" + k, "9", "60"},
				{"RL.MULTI", "2", "a" + k, "b" + k, "SW", "9", "60", "TB", "9", "1", "60"},
				{"EVAL", "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('SET', KEYS[1]..'x', ARGV[1])", "1", k, value()},
			}).Draw(t, "command")...)
		}
		reply := do("EXEC")
		if !strings.Contains(reply, "OOM") && strings.HasPrefix(reply, "*") {
			return
		}
		require.Regexp(t, `^(-EXECABORT|\*1\r\n-OOM .* script: )`, reply)
		require.Equal(t, before, state())
	})
}

// TestTransactionThatSelectsNoDatabase: a queued SELECT of a database that does not exist fails
// by itself, and the commands after it use the previous database.
func TestTransactionThatSelectsNoDatabase(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		for _, maxMemory := range []string{"0", "1"} {
			require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "maxmemory", maxMemory))
			for _, db := range []string{"16", "-1", "9223372036854775807"} {
				require.Equal(t, inproc.OK, c.Do("MULTI"))
				for _, words := range [][]string{{"SELECT", db}, {"LRANGE", "l", "0", "-1"}, {"CL.THROTTLE", "k", "15", "30", "60", "0"}} {
					require.Equal(t, inproc.Queued, c.Do(words...))
				}
				require.Contains(t, c.Do("EXEC"), "out of range")
				require.Equal(t, inproc.Pong, c.Do("PING"))
			}
		}
	})
}

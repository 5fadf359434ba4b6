package records_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/remote/records"
)

// evaluator runs a script in an engine.
type evaluator func(script string, keys, args []string) any

// play runs random scripts in an engine and in the model, and requires the same replies. The time in
// a reply is set in the model if it is near to that of the clock. most is the maximum number of
// records after which a scan ends.
func play(t *testing.T, rng *rand.Rand, eval evaluator, now func() time.Time, most func() int) {
	t.Helper()
	m := remotedouble.NewRecords()
	past := []records.Version{{}}
	both := func(script string, keys, args []string) any {
		t.Helper()
		got := eval(script, keys, args)
		if all, ok := got.([]any); ok && script == records.FollowScript {
			s, _ := strconv.ParseInt(all[1].(string), 10, 64)
			us, _ := strconv.ParseInt(all[2].(string), 10, 64)
			m.Now = s*1e9 + us*1e3
			require.InDelta(t, now().UnixNano(), m.Now, float64(time.Minute))
		}
		want := m.Run(script, keys, args)
		if script == records.ScanScript {
			sortPairs(got)
			sortPairs(want)
		}
		require.Equal(t, want, got, "%s with %q and %q", script[:40], keys, args)
		return got
	}
	text := func() string {
		return []string{"", "a", "main/p", "1:x", ":", "\r\n", "\x00\xff", strings.Repeat("long ", 20)}[rng.IntN(8)]
	}
	version := func() records.Version { return past[rng.IntN(len(past))] }
	for range 60 {
		switch rng.IntN(10) {
		case 0, 1, 2, 3:
			from := past[len(past)-1]
			if rng.IntN(4) == 0 {
				from = version()
			}
			next := records.Version{Number: from.Number + 1, ID: rng.Uint64()}
			keys, args := []string{head, log}, []string{from.String(), next.String(), strconv.FormatUint(next.Number, 10)}
			c := records.Change{ID: next.ID, Previous: from.ID, Millis: rng.Int64N(1e13), Whole: rng.IntN(5) == 0}
			args = append(args, c.Head(), map[bool]string{true: "", false: "1"}[c.Whole], "")
			if next.Number > 9 {
				args[5] = strconv.FormatUint(next.Number-9, 10)
			}
			for range rng.IntN(3) {
				keys = append(keys, records.BucketKey(len(keys)))
				var pairs [][]byte
				for range rng.IntN(4) {
					pairs = append(pairs, []byte(text()), []byte(text()))
				}
				args = append(args, string(records.PairsOf(pairs)))
			}
			if both(records.CommitScript, keys, args) == next.String() {
				past = append(past, next)
			}
		case 4, 5, 6:
			v := version()
			both(records.FollowScript, []string{head, log}, []string{
				v.String(), strconv.FormatUint(v.Number, 10), fmt.Sprintf("%016x", v.ID), strconv.Itoa(rng.IntN(4)), strconv.Itoa(1 + rng.IntN(200)),
			})
		case 7:
			both(records.ScanScript, append([]string{head}, records.BucketKeys()...), []string{strconv.Itoa(rng.IntN(8)), "0", strconv.Itoa(most())})
		case 8:
			both(records.IDsScript, []string{head, log}, []string{strconv.Itoa(rng.IntN(12)), strconv.Itoa(len(past) - 1)})
		case 9:
			if rng.IntN(3) > 0 {
				continue
			}
			n := strconv.Itoa(rng.IntN(len(past)))
			eval("return redis.call('HDEL', KEYS[1], ARGV[1])", []string{log}, []string{n})
			delete(m.Hashes[log], n)
		}
	}
}

// sortPairs sorts the pairs in a reply of scan.lua by their keys.
func sortPairs(reply any) {
	rest := reply.([]any)[3:]
	type pair struct{ key, value string }
	sorted := make([]pair, 0, len(rest)/2)
	for i := 0; i < len(rest); i += 2 {
		sorted = append(sorted, pair{rest[i].(string), rest[i+1].(string)})
	}
	slices.SortFunc(sorted, func(a, b pair) int { return strings.Compare(a.key+"\x00"+a.value, b.key+"\x00"+b.value) })
	for i, p := range sorted {
		rest[2*i], rest[2*i+1] = p.key, p.value
	}
}

// TestScriptsDoWhatTheModelDoes plays random scripts on a server of this module.
func TestScriptsDoWhatTheModelDoes(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		for seed := range uint64(40) {
			require.Equal(t, inproc.OK, c.Do("FLUSHALL"))
			rng := rand.New(rand.NewPCG(seed, 2))
			play(t, rng, evalOn(t, c), time.Now, func() int { return 1 + rng.IntN(5) })
		}
	})
}

// evalOn returns an evaluator that uses c.
func evalOn(t *testing.T, c *inproc.Client) evaluator {
	return func(script string, keys, args []string) any {
		t.Helper()
		words := append([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys...)
		reply := c.Do(append(words, args...)...)
		value, rest := parse(t, reply)
		require.Empty(t, rest)
		return value
	}
}

// parse returns the value of the first reply in text, and the rest. It fails the test for an error
// reply.
func parse(t *testing.T, text string) (value any, rest string) {
	t.Helper()
	line, rest, _ := strings.Cut(text, "\r\n")
	n, err := strconv.Atoi(line[1:])
	switch line[0] {
	case '+':
		return line[1:], rest
	case '-':
		require.Fail(t, line)
	}
	require.NoError(t, err)
	switch {
	case n < 0 && line[0] != ':':
		return nil, rest
	case line[0] == ':':
		return int64(n), rest
	case line[0] == '$':
		return rest[:n], rest[n+2:]
	}
	all := make([]any, n)
	for i := range all {
		all[i], rest = parse(t, rest)
	}
	return all, rest
}

// TestCommitIsAllOrNothing: if a key has another type, or a pair no end, nothing is written.
func TestCommitIsAllOrNothing(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		next := records.Version{Number: 1, ID: 7}
		good := string(records.PairsOf([][]byte{[]byte("k"), []byte("v")}))
		commit := func(texts ...string) string {
			words := []string{"EVAL", records.CommitScript, strconv.Itoa(2 + len(texts)), head, log}
			for i := range texts {
				words = append(words, records.BucketKey(i))
			}
			words = append(words, "", next.String(), "1", records.Change{ID: 7}.Head(), "1", "")
			return c.Do(append(words, texts...)...)
		}
		for name, test := range map[string]struct {
			wrong string
			texts []string
			reply string
		}{
			"hash":      {records.BucketKey(1), []string{good, good}, "-WRONGTYPE"},
			"log":       {log, []string{good}, "-WRONGTYPE"},
			"no end":    {"", []string{good, "5:abc1:x"}, "-ERR a pair has no end"},
			"no length": {"", []string{good, "abc"}, "-ERR a pair has no end"},
			"no value":  {"", []string{good, "1:a"}, "-ERR a field has no value"},
		} {
			require.Equal(t, inproc.OK, c.Do("FLUSHALL"))
			keys := 0
			if test.wrong != "" {
				require.Equal(t, inproc.OK, c.Do("SET", test.wrong, "x"))
				keys = 1
			}
			reply := commit(test.texts...)
			require.True(t, strings.HasPrefix(reply, "-") && strings.Contains(reply, test.reply[1:]), "%s: %s", name, reply)
			require.Equal(t, fmt.Sprintf(":%d\r\n", keys), c.Do("DBSIZE"), name)
		}
		require.Equal(t, inproc.OK, c.Do("FLUSHALL"))
		require.Equal(t, inproc.Bulk(next.String()), commit(good, good))
		require.Equal(t, inproc.Bulk(next.String()), commit(good, good), "sent again")
		require.Equal(t, inproc.Bulk(records.Change{ID: 7}.Head()+good+good), c.Do("HGET", log, "1"))
	})
}

package servers_test

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
	"github.com/cellserver/cellserver/remote/servers"
)

// evaluator runs a script in an engine.
type evaluator func(script string, keys, args []string) any

// play runs random beats in an engine and in the model, and requires the same replies.
func play(t *testing.T, rng *rand.Rand, eval evaluator, now func() time.Time) {
	t.Helper()
	m := remotedouble.NewRecords()
	ids := []string{"a", "b", "c", "", "\r\n", strings.Repeat("x", 40), "full"}
	for range 60 {
		id := ids[rng.IntN(len(ids))]
		if rng.IntN(2) == 0 {
			ms := now().UnixMilli()
			value := []string{
				"", "x", "1 2", "1 2 ", " 1 ", fmt.Sprintf("%d %d r", ms, ms-1000), fmt.Sprintf("%d %d r", ms, ms+60_000),
				fmt.Sprintf("%d %d r", ms, ms+200_000), fmt.Sprintf("x %d r", ms+60_000), fmt.Sprintf("%d %d %s", ms, ms+60_000, strings.Repeat("r", 60)),
				fmt.Sprintf("%d %d", ms, ms+60_000), "1 99999999999999999999 r", "1 1e30 r",
			}[rng.IntN(13)]
			eval("return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])", []string{servers.Key}, []string{id, value})
			if m.Hashes[servers.Key] == nil {
				m.Hashes[servers.Key] = map[string]string{}
			}
			m.Hashes[servers.Key][id] = value
			continue
		}
		args := []string{id, []string{"", "r", "a longer record"}[rng.IntN(3)], "10000", strconv.Itoa(2 + rng.IntN(4)), "90"}
		got := eval(servers.BeatScript, []string{servers.Key}, args)
		ms, err := strconv.ParseInt(got.([]any)[0].(string), 10, 64)
		require.NoError(t, err)
		m.Now = ms * 1e6
		require.InDelta(t, now().UnixNano(), m.Now, float64(time.Minute))
		require.Equal(t, sorted(m.Run(servers.BeatScript, []string{servers.Key}, args)), sorted(got), "%q", args)
	}
}

// playSummaries publishes and reads summaries in an engine.
func playSummaries(t *testing.T, eval evaluator) {
	t.Helper()
	a, b, none := servers.Key+":a", servers.Key+":b", servers.Key+":none"
	eval(servers.PublishScript, []string{a}, []string{"first", "60000"})
	eval(servers.PublishScript, []string{a}, []string{"of a\r\n\x00", "60000"})
	eval(servers.PublishScript, []string{b}, []string{"of b", "60000"})
	read := func(most string, keys ...string) (summaries []string) {
		all := eval(servers.SummariesScript, keys, []string{most}).([]any)
		now, err := strconv.ParseInt(all[0].(string), 10, 64)
		require.NoError(t, err)
		for _, one := range all[1:] {
			stamp, summary, is := strings.Cut(one.(string), " ")
			if is {
				at, err := strconv.ParseInt(stamp, 10, 64)
				require.NoError(t, err)
				require.True(t, now-60_000 < at && at <= now, "written at %d, read at %d", at, now)
			}
			summaries = append(summaries, summary)
		}
		return summaries
	}
	require.Equal(t, []string{"of b", "", "of a\r\n\x00"}, read("30", b, none, a))
	require.Equal(t, []string{"of ", "of "}, read("16", b, a))
	eval("return redis.call('HSET', KEYS[1], 'a', 'b')", []string{none}, nil)
	require.Equal(t, []string{""}, read("30", none))
	ttl := eval("return {tostring(redis.call('PTTL', KEYS[1]))}", []string{a}, nil).([]any)[0].(string)
	ms, err := strconv.Atoi(ttl)
	require.NoError(t, err)
	require.True(t, 0 < ms && ms <= 60000, ttl)
}

// sorted returns the texts of a reply with the pairs in the order of their ids.
func sorted(reply any) []string {
	all := reply.([]any)
	texts := []string{all[0].(string), all[1].(string)}
	var pairs []string
	for i := 2; i < len(all); i += 2 {
		pairs = append(pairs, fmt.Sprintf("%q", all[i:i+2]))
	}
	slices.Sort(pairs)
	return append(texts, pairs...)
}

// TestScriptDoesWhatTheModelDoes plays random beats on a server of this module.
func TestScriptDoesWhatTheModelDoes(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		for seed := range uint64(40) {
			require.Equal(t, inproc.OK, c.Do("FLUSHALL"))
			play(t, rand.New(rand.NewPCG(seed, 2)), func(script string, keys, args []string) any {
				return evalOn(t, c, script, keys, args)
			}, time.Now)
		}
		playSummaries(t, func(script string, keys, args []string) any { return evalOn(t, c, script, keys, args) })
	})
}

// evalOn runs a script on c. It returns nil for a reply that is no array.
func evalOn(t *testing.T, c *inproc.Client, script string, keys, args []string) any {
	t.Helper()
	words := append([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys...)
	reply := c.Do(append(words, args...)...)
	require.False(t, strings.HasPrefix(reply, "-"), reply)
	if reply[0] != '*' {
		return nil
	}
	line, rest, _ := strings.Cut(reply, "\r\n")
	n, err := strconv.Atoi(line[1:])
	require.NoError(t, err)
	all := make([]any, n)
	for i := range all {
		line, rest, _ = strings.Cut(rest, "\r\n")
		length, err := strconv.Atoi(line[1:])
		require.NoError(t, err)
		all[i], rest = rest[:length], rest[length+2:]
	}
	return all
}

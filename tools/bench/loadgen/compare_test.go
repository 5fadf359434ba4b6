package loadgen_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/cellserver/cellserver/tools/bench/loadgen/fakeresp"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   loadgen.Spread
	}{
		{nil, loadgen.Spread{}},
		{[]float64{0, 0}, loadgen.Spread{}},
		{[]float64{3}, loadgen.Spread{Median: 3, Min: 3, Max: 3}},
		{[]float64{5, 1, 3}, loadgen.Spread{Median: 3, Min: 1, Max: 5}},
		{[]float64{4, 0, 1, 3, 2}, loadgen.Spread{Median: 2.5, Min: 1, Max: 4}},
	} {
		require.Equal(t, c.want, loadgen.NewSpread(c.values), "%v", c.values)
	}
}

// contender returns a fake target that appends its name to order when a run begins, which is when
// it receives INFO.
func contender(t *testing.T, name string, delay time.Duration, order *[]string) loadgen.Contender {
	t.Helper()
	target := inBubble(t, func(args []string) string {
		if args[0] == "INFO" {
			*order = append(*order, name)
			return "$30\r\n# Server\r\nredis_version:7.0.15\r\n\r\n"
		}
		time.Sleep(delay) // this is the server's work
		return "+OK\r\n"
	})
	target.Name = name
	o := load(t, "SET {key} x")
	o.Count = 20
	return loadgen.Contender{Target: target, Options: o}
}

func TestCompareTakesTurns(t *testing.T) { bubble.Test(t, compareTakesTurns) }

func compareTakesTurns(t *testing.T) {
	var order []string // the fakes run one at a time
	contenders := []loadgen.Contender{
		contender(t, "slow", 20*time.Millisecond, &order),
		contender(t, "fast", 0, &order),
	}
	var rounds []int
	c, err := loadgen.Compare(t.Context(), contenders, 3, func(round int, _ *loadgen.Result) { rounds = append(rounds, round) })
	require.NoError(t, err)
	require.Equal(t, []string{"slow", "fast", "fast", "slow", "slow", "fast"}, order)
	require.Equal(t, []int{0, 0, 1, 1, 2, 2}, rounds)
	slow, fast := c.Entries[0], c.Entries[1]
	require.Len(t, slow.Rounds, 3)
	require.Equal(t, "redis 7.0.15", slow.Rounds[0].Server)
	require.EqualValues(t, 60, slow.Latency().TotalCount())
	require.Empty(t, slow.Faults())
	ratio := slow.Ratio(fast, loadgen.Percentile(50))
	require.Greater(t, ratio.Median, 2.0)
	require.LessOrEqual(t, ratio.Min, ratio.Median)
	require.Less(t, slow.Ratio(fast, loadgen.PerSecond).Median, 0.5)
	require.GreaterOrEqual(t, slow.Of(loadgen.Mean).Min, 20_000.0)
}

func TestCompareFloodsNewKeysEveryRound(t *testing.T) {
	bubble.Test(t, compareFloodsNewKeysEveryRound)
}

func compareFloodsNewKeysEveryRound(t *testing.T) {
	seen := make(map[string]bool)
	target := inBubble(t, func(args []string) string {
		if args[0] == "SET" {
			require.False(t, seen[args[1]], "key %s comes again", args[1])
			seen[args[1]] = true
		}
		return "+OK\r\n"
	})
	o := load(t, "SET {key} x")
	o.Keys = loadgen.KeySpec{Kind: loadgen.KeyFlood}
	o.Count, o.Connections = 50, 3
	_, err := loadgen.Compare(t.Context(), []loadgen.Contender{{Target: target, Options: o}}, 4, nil)
	require.NoError(t, err)
	require.Len(t, seen, 200)
}

func TestCompareKeepsWholeRounds(t *testing.T) { bubble.Test(t, compareKeepsWholeRounds) }

func compareKeepsWholeRounds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var order []string
	contenders := []loadgen.Contender{contender(t, "a", 0, &order), contender(t, "b", 0, &order)}
	c, err := loadgen.Compare(ctx, contenders, 100, func(round int, r *loadgen.Result) {
		if round == 2 && r.Target == "a" {
			cancel()
		}
	})
	if err != nil {
		require.ErrorIs(t, err, context.Canceled, "the connections of the next run are refused")
		return
	}
	require.Len(t, c.Entries[0].Rounds, 2)
	require.Len(t, c.Entries[1].Rounds, 2)
}

func TestChecksShowTheWorstRound(t *testing.T) {
	rounds := []*loadgen.Result{
		{Checks: []loadgen.Check{{Limit: "a", Most: 5}, {Limit: "b", Most: 1}}},
		{Checks: []loadgen.Check{{Limit: "a", Most: 3, Violations: 1}, {Limit: "b", Most: 2}}},
		{Checks: []loadgen.Check{{Limit: "a", Most: 9}, {Limit: "b", Most: 1}}},
	}
	e := loadgen.Entry{Rounds: rounds}
	require.Equal(t, []loadgen.Check{{Limit: "a", Most: 3, Violations: 1}, {Limit: "b", Most: 2}}, e.Checks())
}

func TestSkippedChecks(t *testing.T) {
	for lines, want := range map[string]string{
		"CL.THROTTLE {key} 4 10 1|CL.THROTTLE {key} 5 10 1":               "two limits share its keys",
		"CL.THROTTLE {key} 4 10 1|DEL {key}":                              "DEL may change its keys",
		"CL.THROTTLE {key} 4 10 1|FLUSHALL":                               "FLUSHALL may change its keys",
		"CL.THROTTLE {key} 4 10 1|RL.MULTI 1 {key} CL 1 1 1":              "two limits share its keys",
		"CL.THROTTLE {key} 4 10 1|RL.MULTI 1 {key} CL 4 10 1":             "",
		"CL.THROTTLE {key} 4 10 1|RL.MULTI 1 {key} CL 4 10 1 WITHDETAILS": "RL.MULTI may change its keys",
		"CC.ACQUIRE {key} 4 10 m{seq}|CC.RELEASE {key} m{seq}":            "CC.RELEASE may change its keys",
		"CL.THROTTLE {key} 4 10 1 -1":                                     "some calls give units back",
		"SW.ALLOW {key} 4 10 FORCE":                                       "FORCE grants beyond the limit",
		"CL.THROTTLE {key} 4 10 1|GET {key}|DEL other:{key}":              "",
		"CL.THROTTLE {key} 4 10 1|2:CL.THROTTLE {key} 4 10 1 2":           "",
		"CL.THROTTLE a{key} 4 10 1|SW.ALLOW b{key} 9 1":                   "",
	} {
		o := load(t, strings.Split(lines, "|")...)
		r := loadgen.NewBench(o).Result(o, time.Second)
		require.Equal(t, want, r.Checks[0].Skipped, lines)
		if want != "" {
			require.Contains(t, r.Checks[0].String(), "not checked: "+want)
		}
	}
}

func TestKeysUsedOnce(t *testing.T) {
	for line, held := range map[string]bool{"CL.THROTTLE k{seq} 4 1 60": true, "CL.THROTTLE k 4 1 60": false} {
		o := load(t, line)
		b := loadgen.NewBench(o)
		for now := time.Duration(0); now < o.Duration; now += 100 * time.Millisecond {
			b.Send(now)
			require.NoError(t, b.Reply(now, fakeresp.Five(0, 5, 4, -1, 1)))
		}
		r := b.Result(o, o.Duration)
		require.Equal(t, held, !r.Violated(), line)
		require.Equal(t, held, strings.Contains(r.Checks[0].String(), "held by every call"), line)
	}
}

func TestIdle(t *testing.T) { bubble.Test(t, idles) }

func idles(t *testing.T) {
	target := inBubble(t, func([]string) string { return "+OK\r\n" })
	target.PID = os.Getpid()
	r, err := loadgen.Idle(t.Context(), target, 20, time.Millisecond)
	if runtime.GOOS != "linux" {
		require.Error(t, err, "its memory cannot be known")
		return
	}
	require.NoError(t, err)
	require.Positive(t, r.Before)
	require.Positive(t, r.After)
	require.Equal(t, 20, r.Connections)
	require.InDelta(t, float64(r.After-r.Before)/20, r.BytesPerConnection(), 1e-9)

	_, err = loadgen.Idle(t.Context(), target, 0, time.Millisecond)
	require.Error(t, err)
}

// expiring is a server whose keys all disappear at an instant of the test's clock.
func expiring(keys map[string]bool, expires *time.Time) fakeresp.Handler {
	return func(args []string) string {
		switch args[0] {
		case "SET":
			keys[args[1]] = true
		case "PEXPIREAT":
			if !keys[args[1]] {
				return ":0\r\n"
			}
			var ms int64
			for _, c := range args[2] {
				ms = 10*ms + int64(c-'0')
			}
			*expires = time.UnixMilli(ms)
			return ":1\r\n"
		case "DBSIZE":
			if !expires.IsZero() && time.Now().After(*expires) {
				clear(keys)
			}
			if len(keys) > 0 {
				return ":5000\r\n"
			}
			return ":0\r\n"
		}
		return "+OK\r\n"
	}
}

func TestExpiry(t *testing.T) { bubble.Test(t, expires) }

func expires(t *testing.T) {
	keys, expires := make(map[string]bool), time.Time{}
	target := inBubble(t, expiring(keys, &expires))
	o := loadgen.ExpiryOptions{
		Keys: 100, Command: "SET gone:{key} x", Lead: 3 * time.Second, Before: 100 * time.Millisecond, Foreground: "PING", Rate: 200, Connections: 2, Threads: 1,
		Tail: time.Second, Shape: one,
	}
	r, err := loadgen.Expiry(t.Context(), target, o)
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.Gone, time.Duration(0))
	require.LessOrEqual(t, r.Gone, 10*time.Millisecond, "it asks every 5 ms, and a command takes 2")
	require.EqualValues(t, 200, r.Quiet.Count())
	require.EqualValues(t, 220, r.During.Count())

	o.Lead = 0
	_, err = loadgen.Expiry(t.Context(), target, o)
	require.ErrorContains(t, err, "too short")
	o.Command = "PING"
	_, err = loadgen.Expiry(t.Context(), target, o)
	require.Error(t, err)
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err = loadgen.Expiry(cancelled, target, o)
	require.Error(t, err)
}

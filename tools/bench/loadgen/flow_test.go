package loadgen_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/cellserver/cellserver/tools/bench/loadgen/fakeresp"
	"github.com/stretchr/testify/require"
)

// mixOf parses a mix and fails the test on an error.
func mixOf(t testing.TB, lines ...string) *loadgen.Mix {
	t.Helper()
	mix, err := loadgen.ParseMix(lines, one)
	require.NoError(t, err)
	return mix
}

// load returns the options of a small run.
func load(t testing.TB, lines ...string) loadgen.Options {
	t.Helper()
	return loadgen.Options{
		Mix: mixOf(t, lines...), Keys: loadgen.KeySpec{Kind: loadgen.KeyUniform, Count: 10},
		Connections: 1, Pipeline: 1, Duration: 2 * time.Second, Seed: 1,
	}
}

// stalling simulates a server that replies within a millisecond, but does nothing from 0.5 s to 1.5
// s.
func stalling(t *testing.T, o loadgen.Options) *loadgen.Result {
	t.Helper()
	b := loadgen.NewBench(o)
	now := time.Duration(0)
	for ; now < o.Duration || !b.Finished(now); now += time.Millisecond {
		b.Send(now)
		arrived := now + time.Millisecond
		if arrived <= 500*time.Millisecond || arrived > 1500*time.Millisecond {
			require.NoError(t, b.Reply(arrived, strings.Repeat("+PONG\r\n", b.Waiting())))
		}
	}
	return b.Result(o, now)
}

func TestOpenLoopChargesAStallForEveryCommandItHeldUp(t *testing.T) {
	o := load(t, "PING")
	o.Rate = 1000
	r := stalling(t, o)
	require.EqualValues(t, 2000, r.Count(), "the schedule goes on during the stall")
	require.EqualValues(t, 2000, r.Lag.TotalCount())
	require.LessOrEqual(t, r.Lag.Max(), int64(time.Millisecond), "the server's stall is not the generator's")
	for percentile, want := range map[float64]time.Duration{
		49: time.Millisecond, 75: 500 * time.Millisecond, 90: 800 * time.Millisecond, 99: 980 * time.Millisecond, 100: 1001 * time.Millisecond,
	} {
		require.InDelta(t, want, r.Latency.ValueAtPercentile(percentile), float64(5*time.Millisecond), "percentile %v", percentile)
	}
}

func TestClosedLoopSeesAStallOnce(t *testing.T) {
	r := stalling(t, load(t, "PING"))
	require.EqualValues(t, 1000, r.Count(), "nothing is sent during the stall")
	require.InDelta(t, time.Millisecond, r.Latency.ValueAtPercentile(99.8), 1e4)
	require.InDelta(t, 1001*time.Millisecond, r.Latency.Max(), 1e6)
}

func TestOpenLoopKeepsItsSchedule(t *testing.T) {
	o := load(t, "PING")
	o.Rate = 3
	o.Duration = 100 * time.Second
	b := loadgen.NewBench(o)
	sent := 0
	for now := time.Duration(0); now <= o.Duration; now += 250 * time.Millisecond {
		b.Send(now)
		sent += strings.Count(b.Taken(), "PING")
		due := int((now*3)/time.Second) + 1
		if now == o.Duration {
			due-- // the end is not part of the run
		}
		require.Equal(t, due, sent, "at %v", now)
	}
}

func TestClosedLoopSendsInBatches(t *testing.T) {
	o := load(t, "GET {key}")
	o.Pipeline = 3
	b := loadgen.NewBench(o)
	b.Send(0)
	require.Equal(t, 3, strings.Count(b.Taken(), "GET"))
	require.NoError(t, b.Reply(1, "$-1\r\n$-1\r\n$-"))
	b.Send(1)
	require.Empty(t, b.Taken(), "one reply is still missing")
	require.Equal(t, 1, b.Waiting())
	require.NoError(t, b.Reply(2, "1\r\n"))
	b.Send(2)
	require.Equal(t, 3, b.Waiting())
	require.False(t, b.Finished(o.Duration))
	require.NoError(t, b.Reply(o.Duration, strings.Repeat("$-1\r\n", 3)))
	b.Send(o.Duration)
	require.True(t, b.Finished(o.Duration), "time is up")
}

func TestCountIsExact(t *testing.T) {
	o := load(t, "PING")
	o.Count, o.Pipeline, o.Duration = 10, 4, time.Hour
	b := loadgen.NewBench(o)
	for now := time.Duration(0); !b.Finished(now); now++ {
		b.Send(now)
		require.NoError(t, b.Reply(now, strings.Repeat("+PONG\r\n", b.Waiting())))
	}
	require.EqualValues(t, 10, b.Result(o, time.Second).Count())
}

func TestWarmupDoesNotCount(t *testing.T) {
	o := load(t, "CL.THROTTLE k 15 30 60")
	o.Warmup, o.Duration = time.Second, time.Second
	b := loadgen.NewBench(o)
	for now := time.Duration(0); now < 2*time.Second; now += 100 * time.Millisecond {
		b.Send(now)
		require.NoError(t, b.Reply(now, fakeresp.Five(0, 16, 3, -1, 1)))
	}
	r := b.Result(o, 2*time.Second)
	require.EqualValues(t, 10, r.Count())
	require.EqualValues(t, 10, r.Commands[0].Allowed)
	require.EqualValues(t, 20, r.Checks[0].Most, "but what was granted then is granted")
}

func TestRepliesAreJudged(t *testing.T) {
	o := load(t, "CL.THROTTLE k 15 30 60 2", "SW.ALLOW w 5 1 3 PARTIAL", "TB.ACQUIRE b 5 1 1 PEEK")
	o.Pipeline = 1
	b := loadgen.NewBench(o)
	answers := map[string][]string{
		"CL": {fakeresp.Five(0, 16, 3, -1, 1), fakeresp.Five(1, 16, 0, 2, 9), "-ERR down\r\n", fakeresp.Five(0, 15, 3, -1, 1)},
		"SW": {fakeresp.Five(0, 5, 2, -1, 1), fakeresp.Five(2, 5, 0, -1, 1), "*4\r\n:0\r\n:5\r\n:2\r\n:1\r\n"},
		"TB": {fakeresp.Five(0, 5, 5, -1, 0), "+OK\r\n"},
	}
	asked := make(map[string]int)
	for now := time.Duration(0); now < 2*time.Second; now += time.Millisecond {
		b.Send(now)
		kind := strings.Split(b.Taken(), "\r\n")[2][:2]
		all := answers[kind]
		require.NoError(t, b.Reply(now, all[asked[kind]%len(all)]))
		asked[kind]++
	}
	r := b.Result(o, 2*time.Second)
	cl, sw, tb := r.Commands[0], r.Commands[1], r.Commands[2]
	quarter := int64(asked["CL"]) / 4
	require.InDelta(t, quarter, cl.Allowed, 1)
	require.InDelta(t, quarter, cl.Denied, 1)
	require.InDelta(t, quarter, cl.Errors, 1)
	require.InDelta(t, quarter, cl.Malformed, 1)
	require.Equal(t, "ERR down", cl.FirstError)
	require.Contains(t, cl.FirstMalformed, "not five integers with the limit 16")
	require.Equal(t, 2*cl.Allowed, cl.Granted)
	require.Equal(t, 3*sw.Allowed+sw.Denied, sw.Granted, "a part was granted")
	require.InDelta(t, asked["SW"]/3, sw.Malformed, 1)
	require.InDelta(t, asked["TB"]/2, tb.Malformed, 1)
	require.Zero(t, r.Checks[2].Most, "a peek takes nothing")
	require.Len(t, r.Failed(), 4)
}

func TestPushesAreNoReplies(t *testing.T) {
	b := loadgen.NewBench(load(t, "PING"))
	b.Send(0)
	require.NoError(t, b.Reply(1, ">2\r\n+invalidate\r\n_\r\n"))
	require.Equal(t, 1, b.Waiting())
	require.NoError(t, b.Reply(2, "+PONG\r\n"))
	require.Zero(t, b.Waiting())
	require.Error(t, b.Reply(3, "+PONG\r\n"), "nobody asked")
}

func TestWatchdog(t *testing.T) {
	const step = time.Second
	for _, c := range []struct {
		name      string
		until     time.Duration
		busy      bool
		completed []int64
		want      time.Duration
	}{
		{"replies keep coming", time.Hour, true, []int64{1, 2, 3, 4, 5, 6, 7}, -1},
		{"the last replies take too long", 2 * step, false, []int64{1, 2, 3, 4, 5, 6, 7}, 5 * step},
		{"a closed loop stands still", time.Hour, true, []int64{1, 2, 2, 2, 2, 3, 3}, 4 * step},
		{"an open loop may have nothing to do", time.Hour, false, []int64{1, 1, 1, 1, 1, 1}, -1},
	} {
		require.Equal(t, c.want, loadgen.GiveUp(c.until, 3*step, c.busy, step, c.completed), c.name)
	}
}

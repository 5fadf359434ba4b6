package loadgen_test

import (
	"testing"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/cellserver/cellserver/tools/bench/loadgen/fakeresp"
	"github.com/stretchr/testify/require"
)

// always sends the commands of lines, ten a second in total, for the given span to a server that
// gives the same reply to each.
func always(t *testing.T, span time.Duration, reply string, lines ...string) *loadgen.Result {
	t.Helper()
	o := load(t, lines...)
	o.Keys.Count, o.Rate, o.Duration = 1, 10, span
	b := loadgen.NewBench(o)
	for now := time.Duration(0); now < span; now += 100 * time.Millisecond {
		b.Send(now)
		for range b.Waiting() {
			require.NoError(t, b.Reply(now+1, reply))
		}
	}
	return b.Result(o, span)
}

// TestMultiChargesEveryClause: the check covers the limit of every clause of RL.MULTI, and a reply
// may show any of these limits.
func TestMultiChargesEveryClause(t *testing.T) {
	const text = "RL.MULTI 2 a:{key} b:{key} CL 9 1000 1000 SW 50 10000 2 FIXED MS"
	for _, shown := range []int64{10, 50} {
		r := always(t, 2*time.Second, fakeresp.Five(0, shown, 1, -1, 1), text)
		require.Empty(t, r.Failed())
		require.Len(t, r.Checks, 2)
		require.Equal(t, "GCRA, 10 at once and one per 1ms", r.Checks[0].Limit)
		require.Equal(t, "sliding window FIXED, 50 per 10s", r.Checks[1].Limit)
		require.EqualValues(t, 20, r.Checks[0].Most)
		require.EqualValues(t, 40, r.Checks[1].Most, "two units each")
		require.False(t, r.Violated())
	}
	r := always(t, 6*time.Second, fakeresp.Five(0, 50, 1, -1, 1), text)
	require.False(t, r.Checks[0].Violated())
	require.True(t, r.Checks[1].Violated(), "120 units in six seconds")

	r = always(t, 6*time.Second, fakeresp.Five(1, 50, 1, -1, 1), text)
	require.Zero(t, r.Checks[0].Most+r.Checks[1].Most, "all or nothing")
	r = always(t, time.Second, fakeresp.Five(0, 51, 1, -1, 1), text)
	require.Contains(t, r.Failed()[0], "not five integers with the limit 10")
	r = always(t, 6*time.Second, fakeresp.Five(0, 50, 1, -1, 1), text+" PEEK")
	require.Zero(t, r.Checks[0].Most+r.Checks[1].Most)
}

// TestLeasesAreBounded: within the length of a lease no more members than the limit get one.
func TestLeasesAreBounded(t *testing.T) {
	const text = "CC.ACQUIRE {key} 5 1 m{seq}"
	require.False(t, always(t, 400*time.Millisecond, fakeresp.Five(0, 5, 1, -1, 1), text).Violated())
	r := always(t, 3*time.Second, fakeresp.Five(0, 5, 1, -1, 1), text)
	require.True(t, r.Violated())
	require.EqualValues(t, 20, r.Checks[0].Bound)
}

// TestOptionsShareAKey: the grants of commands with the same limit and different options are added
// up. The bound is that of the most generous of them.
func TestOptionsShareAKey(t *testing.T) {
	yes := fakeresp.Five(0, 10, 1, -1, 1)
	plain, waits := "TB.ACQUIRE {key} 10 1 1", "TB.ACQUIRE {key} 10 1 1 WAIT 100"
	for _, lines := range [][]string{{plain, waits}, {waits, plain}} {
		r := always(t, 5*time.Second, yes, lines...)
		require.Len(t, r.Checks, 1)
		require.EqualValues(t, 115, r.Checks[0].Bound)
		require.False(t, r.Violated())
	}
	require.True(t, always(t, 5*time.Second, yes, plain).Violated())
	r := always(t, time.Second, yes, "SW.ALLOW {key} 10 1 BUCKETS 5", "SW.ALLOW {key} 10 1 BUCKETS 5 EVEN")
	require.Equal(t, "two limits share its keys", r.Checks[0].Skipped)
}

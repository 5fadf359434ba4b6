package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
)

func TestParseLimits(t *testing.T) {
	l, err := policy.ParseLimits(words("tb 200 100 1 init 50  SW 100000 86400 Fixed anchor key CL 15 30 60 cc 5 60"), false, policy.Bounds{LogMaxEntries: 7, MaxMembers: 9})
	require.Empty(t, err)
	require.False(t, l.Millis)
	require.Equal(t, []string{"TB 200 100 1 INIT 50", "SW 100000 86400 FIXED ANCHOR KEY", "CL 15 30 60", "CC 5 60"}, l.Text)
	require.Len(t, l.Clauses, 4)

	bucket, window, cell, lease := &l.Clauses[0], &l.Clauses[1], &l.Clauses[2], &l.Clauses[3]
	require.Equal(t, []clause.Kind{clause.Bucket, clause.Window, clause.Cell, clause.Lease}, []clause.Kind{bucket.Kind, window.Kind, cell.Kind, lease.Kind})
	require.Equal(t, []int64{200, 100, 50}, []int64{bucket.Bucket.Capacity, bucket.Bucket.Count, bucket.Bucket.Init})
	require.Equal(t, 10*time.Millisecond, bucket.Bucket.Interval)
	require.True(t, window.KeyPhase)
	require.Equal(t, slidingwindow.Call{Limit: 100_000, Window: 24 * time.Hour, Mode: slidingwindow.Fixed, Quantity: 1, LogMaxEntries: 7}, *window.Window)
	require.Equal(t, int64(16), cell.Quota.Limit())
	require.Equal(t, 2*time.Second, cell.Quota.Interval())
	require.Equal(t, concurrency.Call{Limit: 5, Lease: time.Minute, MaxMembers: 9}, *lease.Lease)
	for _, c := range l.Clauses {
		set := 0
		for _, is := range []bool{c.Quota != nil, c.Window != nil, c.Bucket != nil, c.Lease != nil} {
			if is {
				set++
			}
		}
		require.Equal(t, 1, set)
	}
}

func TestParseLimitsMillis(t *testing.T) {
	l, err := policy.ParseLimits(words("SW 5 1500"), true, policy.Bounds{})
	require.Empty(t, err)
	require.True(t, l.Millis)
	require.Equal(t, 1500*time.Millisecond, l.Clauses[0].Window.Window)
}

// TestParseLimitsCalendar: the text has the zone as in tzdata, and can be parsed again. MS changes nothing.
func TestParseLimitsCalendar(t *testing.T) {
	for _, millis := range []bool{false, true} {
		l, err := policy.ParseLimits(words("sw 10000 month zone EUROPE/berlin from 15 SW 5 day fixed calls"), millis, policy.Bounds{})
		require.Empty(t, err)
		require.Equal(t, []string{"SW 10000 MONTH ZONE Europe/Berlin FROM 15", "SW 5 DAY FIXED CALLS"}, l.Text)
		again, err := policy.ParseLimits(words(strings.Join(l.Text, " ")), millis, policy.Bounds{})
		require.Empty(t, err)
		require.Equal(t, l, again)
		require.Equal(t, "MONTH ZONE Europe/Berlin FROM 15", l.Clauses[0].Window.Calendar.String())
		require.True(t, l.Clauses[1].Calls)
	}
	_, err := policy.ParseLimits(words("SW 5 MONTH 1"), false, policy.Bounds{})
	require.Equal(t, "ERR clause 1: a clause of a policy has no quantity", string(err))
}

func TestParseLimitsErrors(t *testing.T) {
	bounds := policy.Bounds{LogMaxEntries: 100}
	for _, row := range []struct{ words, want string }{
		{"", "ERR no clause: LIMITS is followed by clauses such as TB 200 100 1"},
		{"200 TB 200 100 1", "ERR syntax error near '200'"},
		{"TB 200 100", "ERR clause 1: syntax error near 'TB'; usage: TB capacity count period [GREEDY | INTERVAL] [DEBT] [INIT tokens] [CALLS]"},
		{"TB 200 100 1 TB 200 100 x", "ERR clause 2: value is not an integer or out of range: period is 'x', must be a duration such as 60, 60s, 1m, 12h or 1d, in whole seconds unless the policy has MS; usage: TB capacity count period [GREEDY | INTERVAL] [DEBT] [INIT tokens] [CALLS]"},
		{"TB 200 100 1 CC -1 5", "ERR clause 2: value is out of range, must be positive: limit is '-1', must be at least 0; usage: CC limit lease"},
		{"TB 200 100 1 5", "ERR clause 1: a clause of a policy has no quantity"},
		{"TB 200 100 1 1 INIT 5", "ERR clause 1: a clause of a policy has no quantity"},
		{"SW 5 5 0 LOG", "ERR clause 1: a clause of a policy has no quantity"},
		{"CL 15 30 60 CL 15 30 60 1", "ERR clause 2: a clause of a policy has no quantity"},
		{"CC 5 60 1", "ERR clause 1: syntax error near '1'"},
		{"CC 5 0", "ERR clause 1: value is out of range, must be positive: lease is '0', must be an integer of at least 1, in seconds, or with MS in milliseconds; usage: CC limit lease"},
		{"SW 100 5 LOG SW 101 5 LOG", "ERR clause 2: limit exceeds sw-log-max-entries"},
		{"TB 1 1000000001 1", "ERR clause 1: rate is too high, one token must take at least 1 ns: count in larger units, such as KiB instead of bytes, or in a window (SW), which has no such bound"},
		{strings.Repeat("CL 1 1 1 ", 17), "ERR too many clauses, at most 16"},
	} {
		l, err := policy.ParseLimits(words(row.words), false, bounds)
		require.Equal(t, row.want, string(err), row.words)
		require.Nil(t, l)
	}
	l, err := policy.ParseLimits(words(strings.Repeat("CL 1 1 1 ", policy.MaxClauses)), false, bounds)
	require.Empty(t, err)
	require.Len(t, l.Clauses, policy.MaxClauses)
}

func TestEqualLimits(t *testing.T) {
	l := limitsOf(t, "TB 200 100 1 CL 1 1 1")
	require.True(t, l.Equal(limitsOf(t, "tb 200 100 1 cl 1 1 1")))
	require.False(t, l.Equal(limitsOf(t, "TB 200 100 1")))
	require.False(t, l.Equal(limitsOf(t, "CL 1 1 1 TB 200 100 1")))
	millis, err := policy.ParseLimits(words("TB 200 100 1 CL 1 1 1"), true, policy.Bounds{})
	require.Empty(t, err)
	require.False(t, l.Equal(millis))
	require.False(t, l.Equal(nil))
	require.True(t, (*policy.Limits)(nil).Equal(nil))
}

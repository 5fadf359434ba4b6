package concurrency_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
)

// TestPlaces is the worked example of the package comment.
func TestPlaces(t *testing.T) {
	var k key
	force := placing("d", 4, 2, 10*time.Second)
	force.Force = true
	for _, step := range []struct {
		at   int
		call *concurrency.Call
		want [5]int64
	}{
		{0, placing("a", 4, 3, 10*time.Second), [5]int64{0, 4, 1, -1, 10}},
		{1, placing("b", 4, 2, 10*time.Second), [5]int64{1, 4, 1, 9, 9}},
		{2, placing("a", 4, 3, 10*time.Second), [5]int64{0, 4, 1, -1, 10}},
		{3, placing("a", 4, 2, 20*time.Second), [5]int64{0, 4, 2, -1, 20}},
		{4, placing("b", 4, 2, 10*time.Second), [5]int64{0, 4, 0, -1, 19}},
		{5, placing("a", 4, 3, 10*time.Second), [5]int64{1, 4, 0, 9, 18}},
		{6, placing("c", 4, 5, 10*time.Second), [5]int64{1, 4, 0, -1, 17}},
		{7, placing("a", 3, 2, 10*time.Second), [5]int64{0, 3, 0, -1, 10}},
		{8, force, [5]int64{0, 4, 0, -1, 10}},
		{9, placing("c", 4, 1, 10*time.Second), [5]int64{1, 4, 0, 8, 9}},
		{9, placing("a", 0, 1, 10*time.Second), [5]int64{1, 0, 0, -1, 9}},
	} {
		require.Equal(t, step.want, inSeconds(k.call(t, t0.Add(time.Duration(step.at)*time.Second), step.call)), "at %d", step.at)
	}
	force.Limit = 0
	require.Equal(t, int64(1), k.call(t, t0.Add(9*time.Second), force).Refused, "a limit of 0 refuses every call")
}

// TestModeOfASet: a set has the mode Places while a member has several places. Without such a member a
// list has the mode Leases, and the same bytes as if there had been none, after the next call that
// writes. An index keeps the mode for as many calls as it has members.
func TestModeOfASet(t *testing.T) {
	for _, members := range []int{2, 64, 65, 300} {
		k, plain := filled(t, members), filled(t, members)
		many := func(n int64) *concurrency.Call { return placing("member-0", 1<<40, n, time.Hour) }
		k.call(t, t0, many(5))
		require.Equal(t, concurrency.Places, k.mode)
		require.NoError(t, concurrency.Check(k.mode, k.value))
		writes := 0
		for k.mode == concurrency.Places {
			k.call(t, t0, many(1))
			plain.call(t, t0, many(1))
			require.NoError(t, concurrency.Check(k.mode, k.value))
			writes++
			require.LessOrEqual(t, writes, members+2)
		}
		if members <= 64 {
			require.Equal(t, 1, writes)
			require.Equal(t, plain.value, k.value)
		} else {
			require.Greater(t, writes, members)
			require.Less(t, len(k.value), 2*len(plain.value))
		}
	}
}

// TestListInParts: a list in parts has each member that stays once, in order, whatever comes and goes
// between its parts.
func TestListInParts(t *testing.T) {
	for _, members := range []int{1, 3, 64, 300} {
		for mode, k := range sets(t, members) {
			var got []string
			var after []byte
			for begin, more, step := true, true, 0; more; begin, step = false, step+1 {
				after, more = concurrency.List(k.mode, k.value, t0, bytes.Clone(after), begin, 7, func(m []byte, until limit.Instant, places int64) {
					require.Greater(t, until, t0)
					require.Equal(t, mode == concurrency.Places && until == t0.Add(time.Duration(members)*time.Second), places == 2)
					if !bytes.HasPrefix(m, []byte("new")) {
						got = append(got, string(m))
					}
				})
				after = bytes.Clone(after)
				k.call(t, t0, acquire(fmt.Sprintf("new-%d", step), 1<<40, time.Hour))
				require.Less(t, step, members+7)
			}
			require.True(t, slices.IsSorted(got))
			require.Len(t, slices.Compact(got), members)
		}
	}
	_, more := concurrency.List(concurrency.None, nil, t0, nil, true, 1, nil)
	require.False(t, more)
	k := filled(t, 100)
	listed := 0
	last, more := concurrency.List(k.mode, k.value, t0.Add(time.Hour), nil, true, 10, func([]byte, limit.Instant, int64) { listed++ })
	require.True(t, more, "after %s", last)
	require.Zero(t, listed, "leases that have expired are looked at, and not listed")
}

func BenchmarkAcquirePlaces(b *testing.B) {
	for _, members := range []int{10, 60, 1000, 100_000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			k := filledPlaces(b, members)
			calls := make([]*concurrency.Call, members)
			for i := range calls {
				calls[i] = placing(fmt.Sprintf("member-%d", i), 1<<40, int64(1+i%3), time.Hour)
			}
			var p concurrency.Plan
			now := t0
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = (i + 7919) % members
				now++
				if err := concurrency.Decide(k.mode, k.value, k.expiry, now, calls[i], &p); err != nil {
					b.Fatal(err)
				}
				k.apply(&p)
			}
		})
	}
}

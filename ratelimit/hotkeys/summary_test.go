package hotkeys

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
)

// keysOf returns the keys of a server whose one recorder has the tables.
func keysOf(tables [kinds]topTable) *Keys {
	r := &Recorder{tables: tables}
	return New(stats.GroupOptions{}, func(f func(*Recorder)) limit.Instant { f(r); return 0 }, func(int64) {})
}

// busyKeys returns the keys of a server with calls on up to n keys, whose names have about the given length.
func busyKeys(r *rand.Rand, n, length int) *Keys {
	var tables [kinds]topTable
	for kind := range tables {
		for i := range r.IntN(n + 1) {
			add(&tables[kind], i%2, fmt.Appendf(nil, "%d:%s", i, strings.Repeat("x", length)), 1+r.Int64N(1000))
		}
	}
	return keysOf(tables)
}

// TestSummariesAddUp: the sum of the counts of a key and what is missing at most contain the true sum.
func TestSummariesAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	missed := false
	for range 100 {
		length := []int{0, 10, 900}[r.IntN(3)]
		truth := make(map[topName]int64)
		var total int64
		var own Summary
		var others [][]byte
		servers := 1 + r.IntN(4)
		for i := range servers {
			k := busyKeys(r, 700, length)
			counted, n := k.count(Calls, 0)
			total += n
			for _, is := range counted {
				truth[topName{is.DB, is.Name}] += is.Count
			}
			s := k.Summary(0)
			packed := s.Append(nil)
			require.LessOrEqual(t, len(packed), 64<<10)
			again, err := ParseSummary(packed)
			require.NoError(t, err)
			require.Equal(t, packed, again.Append(nil))
			if i == 0 {
				own = again
				continue
			}
			others = append(others, packed)
		}
		top := TopOf(own, others, Calls, EveryDatabase, 10_000, nil)
		require.True(t, slices.IsSortedFunc(top, byCount))
		shares := 0.0
		for _, k := range top {
			is := truth[topName{k.DB, k.Name}]
			require.LessOrEqual(t, k.Count, is)
			require.GreaterOrEqual(t, k.Count+k.Missing, is)
			require.LessOrEqual(t, k.Servers, servers)
			if k.Servers == servers {
				require.Zero(t, k.Missing)
			}
			missed = missed || k.Count < is
			shares += k.Share
		}
		if total > 0 {
			require.LessOrEqual(t, shares, 1.000001)
		}
		for _, k := range TopOf(own, append(others, nil), Calls, 1, 3, func(key string) bool { return key[0] == '1' }) {
			require.Equal(t, 1, k.DB)
			require.EqualValues(t, -1, k.Missing, "a server has no summary")
			require.Equal(t, byte('1'), k.Name[0])
		}
	}
	require.True(t, missed, "some worlds leave keys out")
}

// TestHostileSummaries: bytes that are no summary give an error and take no memory.
func TestHostileSummaries(t *testing.T) {
	s := busyKeys(rand.New(rand.NewPCG(1, 1)), 100, 5).Summary(0)
	packed := s.Append(nil)
	for n := range packed {
		_, err := ParseSummary(packed[:n])
		require.ErrorIs(t, err, errSummary, "%d bytes", n)
	}
	for _, bad := range [][]byte{
		append(slices.Clone(packed), 0),
		{2, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		{summaryVersion, 0, 0, 0xf5, 3, 0},       // more keys than a summary has
		{summaryVersion, 0, 0, 1, 0, 0x81, 8, 0}, // a key that is too long
		{summaryVersion, 1, 0, 1, 0, 1, 'k', 1, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f, 0, 0, 0, 0, 0, 0}, // not a number
	} {
		_, err := ParseSummary(bad)
		require.ErrorIs(t, err, errSummary, "%x", bad)
	}
	_, err := ParseSummary([]byte{summaryVersion, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	require.NoError(t, err)
}

func FuzzParseSummary(f *testing.F) {
	s := busyKeys(rand.New(rand.NewPCG(1, 1)), 10, 5).Summary(0)
	f.Add(s.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := ParseSummary(b); err == nil {
			again, err := ParseSummary(s.Append(nil))
			require.NoError(t, err)
			require.Equal(t, s, again)
			TopOf(s, [][]byte{b, s.Append(nil)}, Denied, EveryDatabase, 10, nil)
		}
	})
}

package stats

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
)

// groupCounts returns a snapshot by name.
func groupCounts(g *Groups) map[string]GroupCount {
	counts := make(map[string]GroupCount)
	for _, n := range g.Snapshot() {
		name := n.Label
		n.Name, n.Label = "", ""
		counts[name] = n
	}
	return counts
}

// call does what a worker does for one call.
func call(l *GroupLane, key string, o Outcome) {
	if l.Due() {
		l.Add([]byte(key), o)
	}
}

var allowed, denied = Outcome{Limit: 10, Remaining: 5}, Outcome{Refused: 1, Limit: 10, RetryAfter: 3 * time.Second}

func TestGroupsAreCountedAlone(t *testing.T) {
	g := NewGroups(GroupOptions{Delimiter: ":", Max: 2})
	l := g.NewLane()
	for range 100 {
		call(l, "api:1", allowed)
		call(l, "login:x:y", denied)
		call(l, "late:1", allowed)
		call(l, "nothing", allowed)
		l.Publish()
	}
	require.Equal(t, map[string]GroupCount{
		"api": {Calls: 85}, "login": {Calls: 85, Denied: 85}, NoGroup: {Calls: 100}, OtherGroups: {Calls: 130, Denied: 15},
	}, groupCounts(g), "groups count from their 16th call on, and there are two")
	require.Equal(t, []string{"api", "login", NoGroup, OtherGroups}, func() (names []string) {
		for _, n := range g.Snapshot() {
			names = append(names, n.Name)
		}
		return names
	}())
	require.Equal(t, Retries{Counts: [10]int64{2: 100}, Sum: 300}, g.Retries())
	l.Reset()
	require.Empty(t, g.Snapshot())
	require.Zero(t, g.Retries())
	call(l, "login:z", denied)
	l.Publish()
	require.Equal(t, map[string]GroupCount{"login": {Calls: 1, Denied: 1}}, groupCounts(g))
}

// TestSampledGroupsAreCountedInProportion: the counts do not depend on the order of groups in a
// pipeline or on its length. A group's share has a standard deviation of 1.5 %: a tenth is seven of
// them.
func TestSampledGroupsAreCountedInProportion(t *testing.T) {
	effort.Alone(t)
	for _, length := range []int{1, 3, 4, 5, 11, 12, 13, 32, 100, 1024} {
		g := NewGroups(GroupOptions{Delimiter: ":", Max: 100})
		l := g.NewLane()
		calls := 0
		for calls < 400_000 {
			for i := range length {
				call(l, fmt.Sprintf("group%d:key", i%12), Outcome{Refused: int64(i % 2), Limit: 1, Remaining: 1})
				calls++
			}
			l.Publish()
		}
		want := make(map[string]float64)
		for i := range length {
			want[fmt.Sprintf("group%d", i%12)] += float64(calls / length)
		}
		sum := 0.0
		for name, n := range groupCounts(g) {
			sum += float64(n.Calls)
			if name != OtherGroups {
				require.InEpsilon(t, want[name], float64(n.Calls), 0.1, "%s of batches of %d", name, length)
			}
		}
		require.InDelta(t, calls, sum, sampleCalls, "batches of %d", length)
	}
}

func TestGroupNamesAreBoundedAndQuoted(t *testing.T) {
	long := strings.Repeat("n", 64)
	for key, want := range map[string]string{
		"api:1": "api", "a b:1": "a b", "größe:1": "größe", ":1": `""`, "": NoGroup, "nothing": NoGroup,
		"other:1": `"other"`, "(none):1": `"(none)"`, "say \"x\":1": `"say \"x\""`, "\xff\xfe:1": `"\xff\xfe"`, "a\nb:1": `"a\nb"`, "back\\:": `"back\\"`,
		long + ":1": long, long + "n:1": OtherGroups, strings.Repeat("n", 1<<20) + ":": OtherGroups,
	} {
		g := NewGroups(GroupOptions{Delimiter: ":", Max: 100})
		l := g.NewLane()
		for range 40 {
			call(l, key, allowed)
			l.Publish()
		}
		require.Equal(t, want, g.Snapshot()[0].Label, "%.80q", key)
		require.Equal(t, GroupName([]byte(key), ":"), g.Snapshot()[0].Name)
	}
}

// TestGroupsAreBoundedWhateverTheKeys: a million groups take the memory of a hundred.
func TestGroupsAreBoundedWhateverTheKeys(t *testing.T) {
	effort.Alone(t)
	g := NewGroups(GroupOptions{Delimiter: ":", Max: 100})
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			l := g.NewLane()
			for i := range 250_000 {
				call(l, fmt.Sprintf("g%d-%d:key", n, i), allowed)
				call(l, "often:key", denied)
				call(l, fmt.Sprintf("some%d:key", i%300), allowed)
				if i%3 == 0 {
					l.Publish()
				}
			}
			l.Publish()
			require.LessOrEqual(t, len(l.slots), 256)
		})
	}
	all.Wait()
	counts := groupCounts(g)
	require.Len(t, counts, 101)
	require.InEpsilon(t, 1_000_000, counts["often"].Denied, 0.05, "it was there all the time")
	require.Less(t, len(g.waiting), maxWaiting+2)
	require.Len(t, g.names, 100)
}

func TestNearLimitIsLittleLeft(t *testing.T) {
	for _, c := range []struct {
		limit, remaining, percent int64
		near                      bool
	}{
		{10, 2, 80, false},
		{10, 1, 80, true},
		{10, 0, 80, true},
		{1, 0, 80, true},
		{1, 1, 80, false},
		{15, 3, 80, false},
		{15, 2, 80, true},
		{0, 0, 80, false},
		{-5, 0, 80, false},
		{math.MaxInt64, math.MaxInt64, 80, false},
		{math.MaxInt64, math.MaxInt64 / 6, 80, true},
		{math.MaxInt64, math.MaxInt64 / 4, 80, false},
		{100, 49, 50, true},
		{100, 50, 50, false},
		{100, 1, 100, false},
	} {
		require.Equal(t, c.near, nearLimit(Outcome{Limit: c.limit, Remaining: c.remaining}, c.percent), "%+v", c)
	}
}

func TestCountingGroupsAllocatesNothing(t *testing.T) {
	g := NewGroups(GroupOptions{Delimiter: ":", Max: 100})
	l := g.NewLane()
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprintf("group%d:%d", i%200, i)
	}
	batch := func() {
		for _, key := range keys {
			l.Count([]byte(key), denied, 1)
		}
		l.Publish()
	}
	for range 20 {
		batch()
	}
	require.Zero(t, testing.AllocsPerRun(100, batch))
}

package docs_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

func windowState(t *testing.T, c slidingwindow.Call, calls int) int {
	t.Helper()
	c.Limit, c.Window, c.Quantity = 100_000, time.Hour, 1
	require.NoError(t, c.Validate())
	var (
		plan  slidingwindow.Plan
		mode  slidingwindow.Mode
		value []byte
	)
	for i := range calls {
		now := midnight.Add(time.Duration(i))
		require.NoError(t, slidingwindow.Decide(mode, value, midnight.Add(time.Hour), now, &c, &plan))
		require.True(t, plan.Decision.Allowed())
		mode, value = plan.Mode, plan.Apply(value, nil)
	}
	return len(value)
}

func bucketState(t *testing.T, mode tokenbucket.Mode) int {
	t.Helper()
	c := tokenbucket.Call{
		Mode: mode, Capacity: 10, Init: 10, Count: 1, Period: time.Second, Interval: time.Second, Quantity: 1,
		Warmup: time.Minute, Cold: 3,
	}
	require.NoError(t, c.Validate())
	var plan tokenbucket.Plan
	require.NoError(t, tokenbucket.Decide(tokenbucket.None, nil, 0, midnight, &c, &plan))
	return len(plan.Apply(nil, nil))
}

func leaseState(t *testing.T, members int) int {
	t.Helper()
	c := concurrency.Call{Op: concurrency.Acquire, Limit: 100_000, Lease: time.Hour}
	var (
		plan  concurrency.Plan
		mode  concurrency.Mode
		value []byte
	)
	for i := range members {
		c.Member = fmt.Appendf(nil, "%036d", i)
		require.NoError(t, c.Validate())
		require.NoError(t, concurrency.Decide(mode, value, midnight.Add(time.Hour), midnight, &c, &plan))
		mode, value = plan.Mode, plan.Apply(value, nil)
	}
	return len(value)
}

// TestStateSizes compares the table of limiters.md, and the sizes in the text below it, with the
// stored sizes.
func TestStateSizes(t *testing.T) {
	effort.Alone(t)
	page, err := os.ReadFile("limiters.md")
	require.NoError(t, err)
	buckets := func(m int) slidingwindow.Call { return slidingwindow.Call{Mode: slidingwindow.Buckets, Slots: m} }
	for row, size := range map[string]int{
		"CL.THROTTLE":  len(gcra.AppendState(nil, midnight)),
		"GREEDY":       bucketState(t, tokenbucket.Greedy),
		"DEBT":         bucketState(t, tokenbucket.Debt),
		"INTERVAL":     bucketState(t, tokenbucket.Interval),
		"LEAKY":        bucketState(t, tokenbucket.Leaky),
		"WARMUP":       bucketState(t, tokenbucket.Warmup),
		"FIXED":        windowState(t, slidingwindow.Call{Mode: slidingwindow.Fixed}, 1),
		"COUNTER":      windowState(t, slidingwindow.Call{Mode: slidingwindow.Counter}, 1),
		"BUCKETS 2":    windowState(t, buckets(2), 1),
		"BUCKETS 60":   windowState(t, buckets(60), 1),
		"BUCKETS 1000": windowState(t, buckets(1000), 1),
	} {
		require.Contains(t, string(page), fmt.Sprintf("\n| %s | %d |\n", row, size))
	}

	log := slidingwindow.Call{Mode: slidingwindow.Log}
	require.Equal(t, 24+256<<10, windowState(t, log, 10_000), "the 256 KiB of 10,000 entries")
	require.Equal(t, 24+2<<20, windowState(t, log, 100_000), "the 2 MiB of 100,000 entries")
	require.Equal(t, 2+64*(10+36), leaseState(t, 64))
	most := leaseState(t, 100_000)
	require.GreaterOrEqual(t, most, 7_600_000)
	require.LessOrEqual(t, most, 11_400_000)
}

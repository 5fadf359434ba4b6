package clock_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/keyspace/clock"
)

// TestAManualClockAddsEveryDuration: of goroutines that advance it at the same time, none is lost.
func TestAManualClockAddsEveryDuration(t *testing.T) {
	c := clock.NewManual(clock.ManualStart)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				_ = c.Advance(time.Second, func() {})
			}
		})
	}
	all.Wait()
	require.Equal(t, clock.ManualStart.Add(8000*time.Second), c.Now())
}

// TestAManualClockEnds: no duration takes it beyond its end, and it stands still then.
func TestAManualClockEnds(t *testing.T) {
	require.Equal(t, "2025-01-01T00:00:00Z", time.Unix(0, int64(clock.ManualStart)).UTC().Format(time.RFC3339Nano))
	require.Equal(t, "2200-01-01T00:00:00Z", time.Unix(0, int64(clock.ManualEnd)).UTC().Format(time.RFC3339Nano))
	c := clock.NewManual(clock.ManualStart)
	require.ErrorIs(t, c.Advance(math.MaxInt64, func() {}), clock.ErrManualEnd)
	require.Equal(t, clock.ManualStart, c.Now())
	require.NoError(t, c.Advance(clock.ManualEnd.Sub(c.Now()), func() {}))
	require.ErrorIs(t, c.Advance(1, func() {}), clock.ErrManualEnd)
	require.Equal(t, clock.ManualEnd, c.Now())
}

// TestTimersOfAManualClockFireAtTheirInstants: in their order, those that a timer sets included, and none that was
// stopped.
func TestTimersOfAManualClockFireAtTheirInstants(t *testing.T) {
	c := clock.NewManual(clock.ManualStart)
	var fired []time.Duration
	settled := 0
	note := func() { fired = append(fired, c.Now().Sub(clock.ManualStart)) }
	c.AfterFunc(3*time.Second, note)
	c.AfterFunc(time.Second, func() {
		note()
		c.AfterFunc(time.Second, note)
	})
	stopped := c.AfterFunc(time.Second, note)
	require.True(t, stopped.Stop())
	require.False(t, stopped.Stop())
	c.AfterFunc(math.MaxInt64, note)
	require.NoError(t, c.Advance(10*time.Second, func() { settled++ }))
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, fired)
	require.Equal(t, 3, settled)
	require.Equal(t, 1, c.Timers())
}

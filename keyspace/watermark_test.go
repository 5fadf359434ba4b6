package keyspace_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

// TestWatermarkWaitsForBatches: the watermark is not beyond the instant of any running batch, and
// advances once these have left, whatever has begun since.
func TestWatermarkWaitsForBatches(t *testing.T) {
	ks, v, c := open(t, keyspace.Options{})
	w := ks.NewHandle()
	defer w.Close()
	require.Equal(t, t0, ks.Watermark(), "nothing runs")
	c.Advance(time.Second)
	require.True(t, v.Enter())
	began := v.Refresh()
	c.Advance(time.Second)
	for range 3 {
		require.LessOrEqual(t, ks.Watermark(), began)
	}
	require.True(t, w.Enter()) // another batch begins before the first ends
	later := w.Refresh()
	v.Leave()
	c.Advance(time.Second)
	require.Equal(t, later, ks.Watermark(), "when the first ran")
	require.True(t, v.Enter())
	v.Leave()
	require.LessOrEqual(t, ks.Watermark(), later)
	w.Leave()
	ks.Watermark()
	require.Equal(t, c.Now(), ks.Watermark())
}

// TestWatermarkWaitsForAStoppedWorld: a long script leaves its event loop and continues at the
// instant at which it began.
func TestWatermarkWaitsForAStoppedWorld(t *testing.T) {
	ks, v, c := open(t, keyspace.Options{})
	require.True(t, v.Enter())
	began := v.Refresh()
	c.Advance(time.Second)
	require.LessOrEqual(t, ks.Watermark(), began, "it runs")
	require.True(t, v.StopWorld())
	v.Leave()
	for range 3 {
		c.Advance(time.Second)
		require.LessOrEqual(t, ks.Watermark(), began, "it runs elsewhere")
	}
	ks.World().Start()
	ks.Watermark()
	require.Equal(t, c.Now(), ks.Watermark())
}

// TestWatermarkBesideBatches: the records of batches are never earlier than a watermark that was
// known before they were made.
func TestWatermarkBesideBatches(t *testing.T) {
	ks := keyspace.New(keyspace.Options{Clock: clock.NewSystem(clock.Options{})})
	defer ks.Close()
	stop := make(chan struct{})
	marks := make(chan limit.Instant)
	go func() {
		defer close(marks)
		for {
			select {
			case <-stop:
				return
			case marks <- ks.Watermark():
			}
		}
	}()
	v := ks.NewHandle()
	defer v.Close()
	for range 20_000 {
		mark := <-marks
		require.True(t, v.Enter())
		at := v.Refresh()
		inside := <-marks
		require.LessOrEqual(t, mark, at)
		require.LessOrEqual(t, inside, at)
		require.LessOrEqual(t, <-marks, at)
		v.Leave()
	}
	close(stop)
}

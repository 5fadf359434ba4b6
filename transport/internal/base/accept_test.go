package base_test

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/transport/internal/base"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// TestFailedAcceptsWait: while there are no file descriptors, accept is called again after 5, 10,
// 20, ... 1,000 ms. After a success the next series begins at 5 ms again.
func TestFailedAcceptsWait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		begun := time.Now()
		var at []time.Duration // when accept was called
		stop := make(chan struct{})
		var failed atomic.Int64
		accept := func() error {
			switch at = append(at, time.Since(begun)); len(at) {
			case 12:
				return nil // there is a descriptor
			case 15:
				close(stop)
			}
			return errors.New("too many open files")
		}
		require.NoError(t, base.AcceptLoop(accept, stop, &failed, transporttest.Quiet))
		require.EqualValues(t, 13, failed.Load())
		var waits []int64
		for i := 1; i < len(at); i++ {
			waits = append(waits, (at[i] - at[i-1]).Milliseconds())
		}
		require.Equal(t, []int64{5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000, 0, 5, 10}, waits)
	})
	var failed atomic.Int64
	closed := func() error { return net.ErrClosed }
	require.ErrorIs(t, base.AcceptLoop(closed, nil, &failed, transporttest.Quiet), net.ErrClosed)
	require.Zero(t, failed.Load())
}

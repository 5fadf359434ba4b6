package goroutine_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport/goroutine"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// TestNobodyIsCutForWhatTheProcessWasLate: a process that was stopped for longer than write-timeout
// closes no client because of that.
func TestNobodyIsCutForWhatTheProcessWasLate(t *testing.T) {
	lim := transporttest.PatientLimits()
	lim.WriteTimeout = transporttest.Patience
	r := transporttest.Start(t, newGoroutine, transporttest.NewLineHandler(), lim)
	c := r.Dial()
	c.Send("big 50000000")
	r.Eventually(func() bool { return r.Transport.Stats().Pending > 0 })
	for range 5 {
		r.Transport.(*goroutine.Transport).Sweep(time.Hour)
	}
	n, err := io.CopyN(io.Discard, c.Reader, 50_000_001)
	require.NoError(t, err)
	require.EqualValues(t, 50_000_001, n)
	require.Zero(t, r.Transport.Stats().SlowClosed)
}

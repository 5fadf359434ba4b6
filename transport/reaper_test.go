package transport_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

// TestNobodyIsCutForWhatTheProcessWasLate: a process that was stopped for longer than
// write-timeout cuts none of its clients for that.
func TestNobodyIsCutForWhatTheProcessWasLate(t *testing.T) {
	lim := patientLimits()
	lim.WriteTimeout = patience
	r := start(t, newGoroutine, newLineHandler(), lim)
	c := r.dial()
	c.send("big 50000000")
	r.eventually(func() bool { return r.tr.Stats().Pending > 0 })
	for range 5 {
		r.tr.(*transport.Goroutine).Sweep(time.Hour)
	}
	n, err := io.CopyN(io.Discard, c.r, 50_000_001)
	require.NoError(t, err)
	require.EqualValues(t, 50_000_001, n)
	require.Zero(t, r.tr.Stats().SlowClosed)
}

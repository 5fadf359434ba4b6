package transport_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestHalfHandshakesHoldNobodyUp: while 1,000 clients begin a handshake and do not continue,
// existing and new clients are served, only few goroutines wait, and the 1,000 are closed at their
// timeout.
func TestHalfHandshakesHoldNobodyUp(t *testing.T) {
	const most, halves = 64, 1000 // handshakes at once
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartTLS()
		working := s.DialTLS(s.Authority.Client())
		require.Equal(t, "+PONG\r\n", working.Do("PING"))
		w.Settle()
		goroutines := runtime.NumGoroutine()
		all := make([]*inproc.Client, halves)
		for i := range all {
			all[i] = s.DialPort(s.TLSPort)
			all[i].Send("\x16\x03\x01") // the beginning of a record
			if i%50 == 0 {
				w.Settle()
				require.Equal(t, "+PONG\r\n", working.Do("PING"))
			}
		}
		for range 5 {
			require.Equal(t, "+PONG\r\n", s.DialTLS(s.Authority.Client()).Do("PING"))
			require.Equal(t, "+PONG\r\n", working.Do("PING"))
		}
		w.Settle()
		require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+most+20)
		began := time.Now()
		for _, c := range all {
			c.ExpectEnd()
		}
		require.Less(t, time.Since(began), 30*time.Second)
		require.Equal(t, "6", working.Info("connected_clients"))
	})
}

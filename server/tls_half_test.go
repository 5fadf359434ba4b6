package server_test

import (
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHalfHandshakesHoldNobodyUp: while 1,000 clients begin a handshake and do not go on,
// others are served and newcomers welcome, few goroutines wait, and the 1,000 are closed
// when their time is over.
func TestHalfHandshakesHoldNobodyUp(t *testing.T) {
	const most = 64 // handshakes at once
	halves := 1000
	if testing.Short() {
		halves = 300
	}
	eachTransport(t, func(t *testing.T, kind string) {
		s := startTLS(t, kind)
		working := s.dial(s.authority.Client())
		require.Equal(t, "+PONG\r\n", working.do("PING"))
		goroutines := runtime.NumGoroutine()
		all := make([]net.Conn, halves)
		for i := range all {
			nc, err := net.Dial("tcp", s.secure)
			require.NoError(t, err)
			defer nc.Close()
			_, err = nc.Write([]byte{22, 3, 1}) // the beginning of a record
			require.NoError(t, err)
			all[i] = nc
			if i%50 == 0 {
				require.Equal(t, "+PONG\r\n", working.do("PING"))
			}
		}
		for range 5 {
			require.Equal(t, "+PONG\r\n", s.dial(s.authority.Client()).do("PING"))
			require.Equal(t, "+PONG\r\n", working.do("PING"))
		}
		require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+most+20)
		var ends sync.WaitGroup
		for _, nc := range all {
			require.NoError(t, nc.SetReadDeadline(time.Now().Add(patience)))
			ends.Go(func() { _, _ = io.Copy(io.Discard, nc) }) // until the server closes it
		}
		ends.Wait()
		eventually(t, "six clients", func() bool { return working.info("connected_clients") == "6" })
	})
}

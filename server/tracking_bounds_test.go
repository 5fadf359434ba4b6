package server_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTrackerThatLeavesWhileItsTransactionRunsIsCountedOnce: a client that goes away
// while its EXEC runs alone, which then turns tracking on, is no tracker afterwards, and
// those that there are go on being told.
func TestTrackerThatLeavesWhileItsTransactionRunsIsCountedOnce(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		other := f.dial()
		long := strings.Repeat("p", 10_000)
		c := f.tracker("BCAST", "PREFIX", long)
		c.send("MULTI\r\n" + string(frame("EVAL", endless, "0")) + "CLIENT TRACKING ON BCAST PREFIX q\r\nEXEC\r\n")
		c.expect(okReply, queuedReply, queuedReply)
		f.runsAlone()
		require.NoError(t, c.Conn.(*net.TCPConn).SetLinger(0))
		require.NoError(t, c.Close())
		eventually(t, "it is forgotten", func() bool { return f.Engine().Beside() < int64(len(long)) })
		f.clock.Advance(5 * time.Second)
		require.Equal(t, okReply, other.do("SCRIPT", "KILL"))
		require.EqualValues(t, 0, other.infoNumber("tracking_clients"))
		require.EqualValues(t, 0, other.infoNumber("tracking_total_prefixes"))

		a := f.tracker()
		a.do("GET", "k")
		other.do("SET", "k", "v")
		require.Equal(t, invalidated("k"), a.reply())
	})
}

// TestTrackingTableKeepsToItsBoundUnderWideReads: a read of many keys cannot bring the
// table beyond tracking-table-max-keys either, nor what one reads of keys that are cached
// already.
func TestTrackingTableKeepsToItsBoundUnderWideReads(t *testing.T) {
	f := start(t, "goroutine", "--tracking-table-max-keys", "100")
	a, b := f.tracker(), f.dial()
	for round := range 5 {
		words := []string{"MGET"}
		for i := range 1000 {
			words = append(words, fmt.Sprintf("k%d", round*700+i))
		}
		a.command(words...)
		for reply := a.reply(); !strings.HasPrefix(reply, "*1000"); reply = a.reply() {
			require.Contains(t, reply, "invalidate")
		}
		require.LessOrEqual(t, b.infoNumber("tracking_total_keys"), int64(100))
	}
}

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
		eventually(t, "it is forgotten", func() bool { return f.Engine().ClientMemory() < int64(len(long)) })
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

// TestTrackedKeyThatAScriptChangesAgainAndAgainTakesNoMemoryForEach: a script of a
// tracking client that reads and changes a key without end does not gather a message for
// each change.
func TestTrackedKeyThatAScriptChangesAgainAndAgainTakesNoMemoryForEach(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		a, b, other := f.tracker(), f.tracker(), f.dial()
		b.do("GET", "k")
		require.Equal(t, ":1\r\n", a.do("EVAL", "for i = 1, 1000 do redis.call('get', KEYS[1]) redis.call('set', KEYS[1], i) end redis.call('get', KEYS[1]) return 1", "1", "k"))
		require.Equal(t, invalidated("k"), b.reply())
		told := 0
		a.command("PING")
		for reply := a.reply(); reply != "+PONG\r\n"; reply = a.reply() {
			require.Equal(t, invalidated("k"), reply)
			told++
		}
		require.Positive(t, told)
		require.Less(t, told, 100)
		require.Equal(t, "+PONG\r\n", b.do("PING"))
		other.do("SET", "k", "w")
		require.Equal(t, invalidated("k"), a.reply(), "it has read what the script left")
	})
}

// TestReadTableIsEmptiedOnceNobodyTracks tests that what clients have read that track no
// more, or are gone, does not fill memory for ever.
func TestReadTableIsEmptiedOnceNobodyTracks(t *testing.T) {
	for name, leave := range map[string]func(c *client){
		"gone": func(c *client) { require.NoError(t, c.Close()) },
		"off":  func(c *client) { require.Equal(t, okReply, c.do("CLIENT", "TRACKING", "OFF")) },
	} {
		f := start(t, "goroutine")
		a, b := f.tracker(), f.dial()
		for i := range 100 {
			a.do("GET", fmt.Sprintf("k%d", i))
		}
		require.EqualValues(t, 100, b.infoNumber("tracking_total_keys"))
		leave(a)
		eventually(t, name, func() bool {
			return b.infoNumber("tracking_total_keys") == 0 && b.infoNumber("tracking_total_items") == 0
		})
	}
}

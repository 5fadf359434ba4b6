package tracking_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestTrackingTableKeepsToItsBoundUnderWideReads: reads of many keys keep the table within
// tracking-table-max-keys, whether the keys are new or cached already.
func TestTrackingTableKeepsToItsBoundUnderWideReads(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--tracking-table-max-keys", "100")
		a, b := tracker(t, f), f.Dial()
		for round := range 5 {
			words := []string{"MGET"}
			for i := range 1000 {
				words = append(words, fmt.Sprintf("k%d", round*700+i))
			}
			a.Command(words...)
			for reply := a.Reply(); !strings.HasPrefix(reply, "*1000"); reply = a.Reply() {
				require.Contains(t, reply, "invalidate")
			}
			require.LessOrEqual(t, b.InfoNumber("tracking_total_keys"), int64(100))
		}
	})
}

// TestTrackedKeyThatAScriptChangesAgainAndAgainTakesNoMemoryForEach: a script of a tracking
// client that reads and changes one key many times does not queue a message for each change.
func TestTrackedKeyThatAScriptChangesAgainAndAgainTakesNoMemoryForEach(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		a, b, other := tracker(t, f), tracker(t, f), f.Dial()
		b.Do("GET", "k")
		require.Equal(t, ":1\r\n", a.Do("EVAL", "for i = 1, 1000 do redis.call('get', KEYS[1]) redis.call('set', KEYS[1], i) end redis.call('get', KEYS[1]) return 1", "1", "k"))
		require.Equal(t, invalidated("k"), b.Reply())
		told := 0
		a.Command("PING")
		for reply := a.Reply(); reply != "+PONG\r\n"; reply = a.Reply() {
			require.Equal(t, invalidated("k"), reply)
			told++
		}
		require.Positive(t, told)
		require.Less(t, told, 100)
		require.Equal(t, "+PONG\r\n", b.Do("PING"))
		other.Do("SET", "k", "w")
		require.Equal(t, invalidated("k"), a.Reply(), "it has read what the script left")
	})
}

// TestReadTableIsEmptiedOnceNobodyTracks: the table drops the reads of clients that stopped
// tracking or disconnected, so that these do not hold memory forever.
func TestReadTableIsEmptiedOnceNobodyTracks(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		for name, leave := range map[string]func(c *inproc.Client){
			"gone": func(c *inproc.Client) { require.NoError(t, c.Close()) },
			"off":  func(c *inproc.Client) { require.Equal(t, inproc.OK, c.Do("CLIENT", "TRACKING", "OFF")) },
		} {
			f := w.Start()
			a, b := tracker(t, f), f.Dial()
			for i := range 100 {
				a.Do("GET", fmt.Sprintf("k%d", i))
			}
			require.EqualValues(t, 100, b.InfoNumber("tracking_total_keys"))
			leave(a)
			w.Settle()
			require.Zero(t, b.InfoNumber("tracking_total_keys"), name)
			require.Zero(t, b.InfoNumber("tracking_total_items"), name)
		}
	})
}

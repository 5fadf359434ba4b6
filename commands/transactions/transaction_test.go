package transactions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestTransactionTexts: what a transaction may contain, what it may not, and how errors end it,
// with the replies of Redis.
func TestTransactionTexts(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		c := s.Dial()
		c.Dialogue(
			[2]string{"EXEC", "-ERR EXEC without MULTI\r\n"},
			[2]string{"DISCARD", "-ERR DISCARD without MULTI\r\n"},
			[2]string{"UNWATCH", inproc.OK},
			[2]string{"WATCH", "-ERR wrong number of arguments for 'watch' command\r\n"},
			[2]string{"MULTI x", "-ERR wrong number of arguments for 'multi' command\r\n"},
			[2]string{"MULTI", inproc.OK}, [2]string{"EXEC", "*0\r\n"},
			[2]string{"MULTI", inproc.OK}, [2]string{"PING", inproc.Queued}, [2]string{"DISCARD", inproc.OK}, [2]string{"EXEC", "-ERR EXEC without MULTI\r\n"},
			// Nesting is refused and does not end the transaction.
			[2]string{"MULTI", inproc.OK}, [2]string{"MULTI", "-ERR MULTI calls can not be nested\r\n"},
			[2]string{"WATCH k", "-ERR WATCH inside MULTI is not allowed\r\n"}, [2]string{"PING", inproc.Queued}, [2]string{"EXEC", inproc.Array(inproc.Pong)},
			// A wrong argument fails in EXEC, and the other commands run.
			[2]string{"MULTI", inproc.OK}, [2]string{"CL.THROTTLE k x 1 1", inproc.Queued}, [2]string{"CL.THROTTLE k", inproc.Queued},
			[2]string{"CL.THROTTLE k 1 1 1", inproc.Queued}, [2]string{"SW.ALLOW s 0 1", inproc.Queued}, [2]string{"TYPE s", inproc.Queued},
			[2]string{"EXEC", inproc.Array("-Cell error: Store error: Couldn't parse as integer: x\r\n",
				"-Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]\r\n",
				inproc.Five(0, 2, 1, -1, 1), "-ERR value is out of range, must be positive: limit is '0', must be at least 1; usage: "+
					"SW.ALLOW key limit <window | DAY | WEEK | MONTH | YEAR> [quantity] [COUNTER | FIXED | LOG | <BUCKETS slots [EVEN]>] [ANCHOR <FIRST | KEY | unix-time>] [ZONE zone] [FROM start] "+
					"[PENALIZE] [KEEP <units | share%>] [MS] [PEEK | PARTIAL | FORCE] [BLOCK timeout] [ID token | RESERVE id ttl]\r\n", "+none\r\n")},
		)
		for _, bad := range [][2]string{
			{"NOSUCH a", "-ERR unknown command 'NOSUCH', with args beginning with: 'a' \r\n"},
			{"CLIENT NOSUCH", "-ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.\r\n"},
			{"GET", "-ERR wrong number of arguments for 'get' command\r\n"},
			{"CLIENT", "-ERR wrong number of arguments for 'client' command\r\n"},
			{"SW.ALLOW k", "-ERR wrong number of arguments for 'sw.allow' command\r\n"},
			{"SHUTDOWN", "-ERR Command not allowed inside a transaction\r\n"},
			{"GET " + strings.Repeat("k", 16<<10+1), "-ERR key is too long, at most 16384 bytes\r\n"},
		} {
			c.Dialogue(
				[2]string{"MULTI", inproc.OK}, [2]string{"CL.THROTTLE never 1 1 1", inproc.Queued}, bad,
				[2]string{"PING", inproc.Queued}, [2]string{"EXEC", inproc.ExecAbort}, [2]string{"EXISTS never", ":0\r\n"},
			)
			c.Dialogue([2]string{"MULTI", inproc.OK}, bad, [2]string{"DISCARD", inproc.OK}, [2]string{"PING", inproc.Pong})
		}
		c.Dialogue([2]string{"MULTI", inproc.OK}, [2]string{"GET", "-ERR wrong number of arguments for 'get' command\r\n"},
			[2]string{"QUIT", inproc.OK})
		c.ExpectEnd()
	})
}

// TestTransactionSelect: SELECT inside a transaction applies to the commands after it, inside and
// after the transaction, and to the locks.
func TestTransactionSelect(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		c.Dialogue(
			[2]string{"CL.THROTTLE k 1 1 1", inproc.Five(0, 2, 1, -1, 1)},
			[2]string{"MULTI", inproc.OK}, [2]string{"SELECT 5", inproc.Queued}, [2]string{"EXISTS k", inproc.Queued}, [2]string{"CL.THROTTLE k 4 1 1", inproc.Queued},
			[2]string{"SELECT 99", inproc.Queued}, [2]string{"SELECT x", inproc.Queued}, [2]string{"EXISTS k", inproc.Queued}, [2]string{"SELECT 0", inproc.Queued}, [2]string{"EXISTS k other", inproc.Queued},
			[2]string{"SELECT 7", inproc.Queued},
			[2]string{"EXEC", inproc.Array(inproc.OK, ":0\r\n", inproc.Five(0, 5, 4, -1, 1), "-ERR DB index is out of range\r\n", "-ERR value is not an integer or out of range\r\n",
				":1\r\n", inproc.OK, ":1\r\n", inproc.OK)},
			[2]string{"EXISTS k", ":0\r\n"}, [2]string{"SELECT 5", inproc.OK}, [2]string{"EXISTS k", ":1\r\n"},
		)
	})
}

// TestTransactionOverAllKeys runs commands that access keys which they do not name.
func TestTransactionOverAllKeys(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		c.Dialogue(
			[2]string{"CL.THROTTLE old 1 1 1", inproc.Five(0, 2, 1, -1, 1)},
			[2]string{"MULTI", inproc.OK}, [2]string{"DBSIZE", inproc.Queued}, [2]string{"KEYS *", inproc.Queued}, [2]string{"FLUSHALL", inproc.Queued}, [2]string{"DBSIZE", inproc.Queued},
			[2]string{"CL.THROTTLE k 1 1 1", inproc.Queued}, [2]string{"SCAN 0 COUNT 100000", inproc.Queued}, [2]string{"RANDOMKEY", inproc.Queued},
			[2]string{"FLUSHDB ASYNC", inproc.Queued}, [2]string{"RANDOMKEY", inproc.Queued}, [2]string{"FLUSHALL NO", inproc.Queued},
			[2]string{"EXEC", inproc.Array(":1\r\n", inproc.Array(inproc.Bulk("old")), inproc.OK, ":0\r\n", inproc.Five(0, 2, 1, -1, 1),
				inproc.Array(inproc.Bulk("0"), inproc.Array(inproc.Bulk("k"))), inproc.Bulk("k"), inproc.OK, "$-1\r\n", "-ERR syntax error\r\n")},
			[2]string{"DBSIZE", ":0\r\n"},
		)
	})
}

// TestInfoInsideExec: INFO counts keys while the transaction holds their locks.
func TestInfoInsideExec(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		c.Send("MULTI\r\nCL.THROTTLE k 1 1 1\r\nINFO\r\nEXEC\r\n")
		c.Expect(inproc.OK, inproc.Queued, inproc.Queued)
		require.Contains(t, c.Reply(), "db0:keys=1,expires=1")
	})
}

// TestWatch: changes that make EXEC reply with null, and calls that do not.
func TestWatch(t *testing.T) {
	type step = [2]string
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		for name, c := range map[string]struct {
			before, meanwhile string // commands of another client, before WATCH and after it
			own               string // commands of the watching client, after WATCH
			fails             bool
		}{
			"nothing happens":                {"CL.THROTTLE k 1 1 9", "PING", "", false},
			"another writes":                 {"CL.THROTTLE k 1 1 9", "CL.THROTTLE k 1 1 9", "", true},
			"another makes it":               {"PING", "CL.THROTTLE k 1 1 9", "", true},
			"another deletes":                {"CL.THROTTLE k 1 1 9", "DEL k", "", true},
			"another deletes nothing":        {"PING", "DEL k", "", false},
			"another makes and deletes":      {"PING", "MULTI;CL.THROTTLE k 1 1 9;DEL k;EXEC", "", true},
			"another flushes":                {"CL.THROTTLE k 1 1 9", "FLUSHALL", "", true},
			"another flushes the database":   {"CL.THROTTLE k 1 1 9", "FLUSHDB", "", true},
			"another flushes what is not":    {"CL.THROTTLE other 1 1 9", "FLUSHALL", "", false},
			"another renames it":             {"CL.THROTTLE k 1 1 9", "RENAME k l", "", true},
			"another renames onto it":        {"CL.THROTTLE l 1 1 9", "RENAME l k", "", true},
			"another sets its expiry":        {"CL.THROTTLE k 1 1 9", "EXPIRE k 100", "", true},
			"another persists it":            {"CL.THROTTLE k 1 1 9", "PERSIST k", "", true},
			"another reads":                  {"CL.THROTTLE k 1 1 9", "MULTI;GET k;TTL k;TYPE k;EXISTS k;CL.THROTTLE k 1 1 9 0;EXEC", "", false},
			"another is denied":              {"CL.THROTTLE k 0 1 9", "CL.THROTTLE k 0 1 9", "", false},
			"another peeks":                  {"SW.ALLOW k 1 9", "SW.ALLOW k 1 9 1 PEEK", "", false},
			"another charges several limits": {"PING", "RL.MULTI 2 a k CL 1 1 9 SW 1 9", "", true},
			"another is denied several":      {"SW.ALLOW a 1 9", "RL.MULTI 2 a k SW 1 9 SW 1 9", "", false},
			"another takes a lease":          {"PING", "CC.ACQUIRE k 1 9 m", "", true},
			"another releases none":          {"CC.ACQUIRE k 1 9 m", "CC.RELEASE k n", "", false},
			"elsewhere, the same name":       {"PING", "SELECT 3;CL.THROTTLE k 1 1 9;SELECT 0", "", false},
			"elsewhere, a flush":             {"CL.THROTTLE k 1 1 9", "SELECT 3;FLUSHDB;SELECT 0", "", false},
			"it writes itself":               {"CL.THROTTLE k 1 1 9", "PING", "CL.THROTTLE k 1 1 9", true},
			"it unwatches":                   {"CL.THROTTLE k 1 1 9", "CL.THROTTLE k 1 1 9", "UNWATCH", false},
			"it discards":                    {"CL.THROTTLE k 1 1 9", "CL.THROTTLE k 1 1 9", "MULTI;DISCARD", false},
			"it fails a transaction":         {"CL.THROTTLE k 1 1 9", "CL.THROTTLE k 1 1 9", "MULTI;NOSUCH;EXEC", false},
			"it selects":                     {"PING", "CL.THROTTLE k 1 1 9", "SELECT 4", true},
			"it resets":                      {"CL.THROTTLE k 1 1 9", "CL.THROTTLE k 1 1 9", "RESET", false},
			"it expires":                     {"CL.THROTTLE k 1 1 9", "+10s", "", true},
			"it expires unseen, then made":   {"CL.THROTTLE k 1 1 9", "+10s;CL.THROTTLE k 1 1 9", "", true},
			"what was not there expires":     {"PING", "CL.THROTTLE l 1 1 9;+10s", "", false},
		} {
			other, me := s.Dial(), s.Dial()
			run := func(c *inproc.Client, commands string) {
				for _, command := range strings.Split(commands, ";") {
					if command == "+10s" {
						w.Advance(10 * time.Second)
					} else if command != "" {
						c.Do(strings.Fields(command)...)
					}
				}
			}
			run(other, "FLUSHALL;"+c.before)
			me.Dialogue(step{"WATCH unrelated k k", inproc.OK})
			run(other, c.meanwhile)
			run(me, c.own)
			want := inproc.Array(inproc.Pong)
			if c.fails {
				want = "*-1\r\n"
			}
			me.Dialogue(step{"MULTI", inproc.OK}, step{"PING", inproc.Queued})
			require.Equal(t, want, me.Do("EXEC"), name)
			me.Dialogue(step{"MULTI", inproc.OK}, step{"PING", inproc.Queued}, step{"EXEC", inproc.Array(inproc.Pong)})
			require.NoError(t, me.Close())
		}
		three := s.Dial()
		require.Contains(t, three.Do("HELLO", "3"), "%7")
		three.Dialogue(step{"FLUSHALL", inproc.OK}, step{"WATCH k", inproc.OK}, step{"CL.THROTTLE k 1 1 9", inproc.Five(0, 2, 1, -1, 9)}, step{"MULTI", inproc.OK}, step{"EXEC", "_\r\n"})
	})
}

// TestTransactionsAndWatchesAreBounded: the size of a transaction and of its watched keys is
// bounded.
func TestTransactionsAndWatchesAreBounded(t *testing.T) {
	const tooLarge = "-ERR the transaction is too large\r\n"
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		c := s.Dial()
		flood := func(command, answer string, n int) {
			go func() { _, _ = c.Write([]byte(strings.Repeat(command, n))) }() // the replies show when it has been read
			for range n {
				c.Expect(answer)
			}
		}
		c.Dialogue([2]string{"MULTI", inproc.OK})
		flood("PING\r\n", inproc.Queued, 1<<16)
		c.Dialogue([2]string{"PING", tooLarge}, [2]string{"EXEC", inproc.ExecAbort}, [2]string{"MULTI", inproc.OK})
		flood("PING\r\n", inproc.Queued, 1<<16)
		c.Send("EXEC\r\n")
		require.Equal(t, inproc.Array(slices.Repeat([]string{inproc.Pong}, 1<<16)...), c.Reply())

		before := inproc.HeapBytes()
		c.Dialogue([2]string{"MULTI", inproc.OK})
		large := string(inproc.Encode(nil, "ECHO", strings.Repeat("x", 1<<20-100)))
		flood(large, inproc.Queued, 15)
		flood(large, tooLarge, 20)
		require.Less(t, inproc.HeapBytes(), before+20<<20)
		c.Dialogue([2]string{"DISCARD", inproc.OK})

		c.Dialogue([2]string{"MULTI", inproc.OK})
		wide := string(inproc.Encode(nil, append([]string{"EXISTS"}, slices.Repeat([]string{"k"}, 60_000)...)...))
		n := 0
		for ; ; n++ {
			c.Send(wide)
			if got := c.Reply(); got != inproc.Queued {
				require.Equal(t, tooLarge, got)
				break
			}
		}
		require.InDelta(t, (16<<20)/(60_000*(7+24)), n, 2, "an argument of one byte counts with what it costs")
		require.Less(t, inproc.HeapBytes(), before+20<<20)
		c.Dialogue([2]string{"EXEC", inproc.ExecAbort})
		require.Less(t, inproc.HeapBytes(), before+3<<20, "the memory is back")

		for n = 0; ; n++ {
			if got := c.Do("WATCH", fmt.Sprintf("%05d%s", n, strings.Repeat("k", 16_000))); got != inproc.OK {
				require.Equal(t, "-ERR too many watched keys\r\n", got)
				break
			}
		}
		require.InDelta(t, (16<<20)/16_261, n, 2)
		c.Dialogue([2]string{"UNWATCH", inproc.OK}, [2]string{"WATCH k", inproc.OK})
	})
}

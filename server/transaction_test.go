package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const execAbort = "-EXECABORT Transaction discarded because of previous errors.\r\n"

// dialogue sends each packet on its own and compares all replies that it brings.
func dialogue(t *testing.T, c *client, steps ...[2]string) {
	t.Helper()
	for _, s := range steps {
		c.send(s[0] + "\r\n")
		for rest := s[1]; rest != ""; {
			got := c.reply()
			require.True(t, strings.HasPrefix(rest, got), "%q brought %q, wanted %q", s[0], got, rest)
			rest = rest[len(got):]
		}
	}
}

const (
	okReply     = "+OK\r\n"
	queuedReply = "+QUEUED\r\n"
)

// TestTransactionTexts: what belongs into a transaction, what does not, and how errors
// end it, in Redis' words.
func TestTransactionTexts(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		dialogue(t, c,
			[2]string{"EXEC", "-ERR EXEC without MULTI\r\n"},
			[2]string{"DISCARD", "-ERR DISCARD without MULTI\r\n"},
			[2]string{"UNWATCH", okReply},
			[2]string{"WATCH", "-ERR wrong number of arguments for 'watch' command\r\n"},
			[2]string{"MULTI x", "-ERR wrong number of arguments for 'multi' command\r\n"},
			[2]string{"MULTI", okReply}, [2]string{"EXEC", "*0\r\n"},
			[2]string{"MULTI", okReply}, [2]string{"PING", queuedReply}, [2]string{"DISCARD", okReply}, [2]string{"EXEC", "-ERR EXEC without MULTI\r\n"},
			// Nesting is refused, and ends nothing.
			[2]string{"MULTI", okReply}, [2]string{"MULTI", "-ERR MULTI calls can not be nested\r\n"},
			[2]string{"WATCH k", "-ERR WATCH inside MULTI is not allowed\r\n"}, [2]string{"PING", queuedReply}, [2]string{"EXEC", array("+PONG\r\n")},
			// A bad argument is found out by EXEC, and the others run.
			[2]string{"MULTI", okReply}, [2]string{"CL.THROTTLE k x 1 1", queuedReply}, [2]string{"CL.THROTTLE k", queuedReply},
			[2]string{"CL.THROTTLE k 1 1 1", queuedReply}, [2]string{"SW.ALLOW s 0 1", queuedReply}, [2]string{"TYPE s", queuedReply},
			[2]string{"EXEC", array("-Cell error: Store error: Couldn't parse as integer: x\r\n",
				"-Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]\r\n",
				five(0, 2, 1, -1, 1), "-ERR value is out of range, must be positive\r\n", "+none\r\n")},
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
			dialogue(t, c,
				[2]string{"MULTI", okReply}, [2]string{"CL.THROTTLE never 1 1 1", queuedReply}, bad,
				[2]string{"PING", queuedReply}, [2]string{"EXEC", execAbort}, [2]string{"EXISTS never", ":0\r\n"},
			)
			dialogue(t, c, [2]string{"MULTI", okReply}, bad, [2]string{"DISCARD", okReply}, [2]string{"PING", "+PONG\r\n"})
		}
		dialogue(t, c, [2]string{"MULTI", okReply}, [2]string{"GET", "-ERR wrong number of arguments for 'get' command\r\n"},
			[2]string{"QUIT", okReply})
		c.expectEnd()
	})
}

// TestTransactionSelect: the database chosen inside counts for what follows, inside and
// afterwards, and for the locks.
func TestTransactionSelect(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		c := start(t, kind).dial()
		dialogue(t, c,
			[2]string{"CL.THROTTLE k 1 1 1", five(0, 2, 1, -1, 1)},
			[2]string{"MULTI", okReply}, [2]string{"SELECT 5", queuedReply}, [2]string{"EXISTS k", queuedReply}, [2]string{"CL.THROTTLE k 4 1 1", queuedReply},
			[2]string{"SELECT 99", queuedReply}, [2]string{"SELECT x", queuedReply}, [2]string{"EXISTS k", queuedReply}, [2]string{"SELECT 0", queuedReply}, [2]string{"EXISTS k other", queuedReply},
			[2]string{"SELECT 7", queuedReply},
			[2]string{"EXEC", array(okReply, ":0\r\n", five(0, 5, 4, -1, 1), "-ERR DB index is out of range\r\n", "-ERR value is not an integer or out of range\r\n",
				":1\r\n", okReply, ":1\r\n", okReply)},
			[2]string{"EXISTS k", ":0\r\n"}, [2]string{"SELECT 5", okReply}, [2]string{"EXISTS k", ":1\r\n"},
		)
	})
}

// TestTransactionOverAllKeys: commands that touch keys they do not name.
func TestTransactionOverAllKeys(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		c := start(t, kind).dial()
		dialogue(t, c,
			[2]string{"CL.THROTTLE old 1 1 1", five(0, 2, 1, -1, 1)},
			[2]string{"MULTI", okReply}, [2]string{"DBSIZE", queuedReply}, [2]string{"KEYS *", queuedReply}, [2]string{"FLUSHALL", queuedReply}, [2]string{"DBSIZE", queuedReply},
			[2]string{"CL.THROTTLE k 1 1 1", queuedReply}, [2]string{"SCAN 0 COUNT 100000", queuedReply}, [2]string{"RANDOMKEY", queuedReply},
			[2]string{"FLUSHDB ASYNC", queuedReply}, [2]string{"RANDOMKEY", queuedReply}, [2]string{"FLUSHALL NO", queuedReply},
			[2]string{"EXEC", array(":1\r\n", array(bulk("old")), okReply, ":0\r\n", five(0, 2, 1, -1, 1),
				array(bulk("0"), array(bulk("k"))), bulk("k"), okReply, "$-1\r\n", "-ERR syntax error\r\n")},
			[2]string{"DBSIZE", ":0\r\n"},
		)
	})
}

// TestInfoInsideExec: INFO counts keys whose locks the transaction holds already.
func TestInfoInsideExec(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		c := start(t, kind).dial()
		c.send("MULTI\r\nCL.THROTTLE k 1 1 1\r\nINFO\r\nEXEC\r\n")
		c.expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n")
		require.Contains(t, c.reply(), "db0:keys=1,expires=1")
	})
}

// TestWatch: what makes EXEC answer null, and what does not.
func TestWatch(t *testing.T) {
	type step = [2]string
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		for name, c := range map[string]struct {
			before, meanwhile string // by another client, before WATCH and after it
			own               string // by the watching client, after WATCH
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
			other, me := f.dial(), f.dial()
			run := func(c *client, commands string) {
				for _, command := range strings.Split(commands, ";") {
					if command == "+10s" {
						f.clock.Advance(10 * time.Second)
					} else if command != "" {
						c.do(strings.Fields(command)...)
					}
				}
			}
			run(other, "FLUSHALL;"+c.before)
			dialogue(t, me, step{"WATCH unrelated k k", okReply})
			run(other, c.meanwhile)
			run(me, c.own)
			want := array("+PONG\r\n")
			if c.fails {
				want = "*-1\r\n"
			}
			dialogue(t, me, step{"MULTI", okReply}, step{"PING", queuedReply})
			require.Equal(t, want, me.do("EXEC"), name)
			dialogue(t, me, step{"MULTI", okReply}, step{"PING", queuedReply}, step{"EXEC", array("+PONG\r\n")})
			require.NoError(t, me.Close())
		}
		three := f.dial()
		require.Contains(t, three.do("HELLO", "3"), "%7")
		dialogue(t, three, step{"FLUSHALL", okReply}, step{"WATCH k", okReply}, step{"CL.THROTTLE k 1 1 9", five(0, 2, 1, -1, 9)}, step{"MULTI", okReply}, step{"EXEC", "_\r\n"})
	})
}

// TestTransactionsAndWatchesAreBounded: how much a transaction and a watch may hold.
func TestTransactionsAndWatchesAreBounded(t *testing.T) {
	const tooLarge = "-ERR the transaction is too large\r\n"
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		flood := func(command, answer string, n int) {
			go func() { _, _ = c.Write([]byte(strings.Repeat(command, n))) }() // the replies tell
			for range n {
				c.expect(answer)
			}
		}
		dialogue(t, c, [2]string{"MULTI", okReply})
		flood("PING\r\n", queuedReply, 1<<16)
		dialogue(t, c, [2]string{"PING", tooLarge}, [2]string{"EXEC", execAbort}, [2]string{"MULTI", okReply})
		flood("PING\r\n", queuedReply, 1<<16)
		c.send("EXEC\r\n")
		require.Equal(t, array(replicate("+PONG\r\n", 1<<16)...), c.reply())

		before := heapBytes()
		dialogue(t, c, [2]string{"MULTI", okReply})
		large := string(frame("ECHO", strings.Repeat("x", 1<<20-100)))
		flood(large, queuedReply, 15)
		flood(large, tooLarge, 20)
		require.Less(t, heapBytes(), before+20<<20)
		dialogue(t, c, [2]string{"DISCARD", okReply})

		dialogue(t, c, [2]string{"MULTI", okReply})
		wide := string(frame(append([]string{"EXISTS"}, replicate("k", 60_000)...)...))
		n := 0
		for ; ; n++ {
			c.send(wide)
			if got := c.reply(); got != queuedReply {
				require.Equal(t, tooLarge, got)
				break
			}
		}
		require.InDelta(t, (16<<20)/(60_000*(7+24)), n, 2, "an argument of one byte counts with what it costs")
		require.Less(t, heapBytes(), before+20<<20)
		dialogue(t, c, [2]string{"EXEC", execAbort})
		eventually(t, "the memory is back", func() bool { return heapBytes() < before+3<<20 })

		for n = 0; ; n++ {
			if got := c.do("WATCH", fmt.Sprintf("%05d%s", n, strings.Repeat("k", 16_000))); got != okReply {
				require.Equal(t, "-ERR too many watched keys\r\n", got)
				break
			}
		}
		require.InDelta(t, (16<<20)/16_261, n, 2)
		dialogue(t, c, [2]string{"UNWATCH", okReply}, [2]string{"WATCH k", okReply})
	})
}

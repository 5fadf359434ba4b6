package scripting_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

const (
	busyReply   = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"
	unkillable  = "-UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.\r\n"
	endless     = "while true do end"
	killedReply = "-ERR Script killed by user with SCRIPT KILL..."
)

// scriptModes returns variants of one script that run in different ways: with its keys locked,
// with all keys locked, with the world stopped, and with a short loop.
func scriptModes(body string) []string {
	straight := strings.NewReplacer("KEYS[1]", "ARGV[1]", "KEYS[2]", "ARGV[2]", "KEYS[3]", "ARGV[3]").Replace(body)
	return []string{body, straight, "return (function() " + body + " end)()", "for _ = 1, 1 do " + body + " end"}
}

// evalFrame returns an EVAL that passes the same words as keys and as arguments.
func evalFrame(script string, keys ...string) string {
	words := append([]string{"EVAL", script, fmt.Sprint(len(keys))}, keys...)
	return string(inproc.Encode(nil, append(words, keys...)...))
}

// TestScriptsAreAtomic: clients charge two keys together, by a script of either kind, a
// transaction or an RL.MULTI, while other clients read both. No client sees one key charged and
// the other not.
func TestScriptsAreAtomic(t *testing.T) {
	const limit = 1_000_000
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		call := func(quantity int) string {
			return fmt.Sprintf("local a = redis.call('sw.allow', KEYS[1], %d, 60, %d) local b = redis.call('tb.acquire', KEYS[2], %d, 1, 1000, %d) return {a[3], b[3]}",
				limit, quantity, limit, quantity)
		}
		var packets []string
		for _, s := range append(scriptModes(call(1)), scriptModes(call(0))...) {
			packets = append(packets, evalFrame(s, "x", "y"))
		}
		packets = append(packets,
			fmt.Sprintf("MULTI\r\nSW.ALLOW x %d 60\r\nTB.ACQUIRE y %d 1 1000\r\nEXEC\r\n", limit, limit),
			fmt.Sprintf("MULTI\r\n%s%sEXEC\r\n", evalFrame(scriptModes(call(1))[2], "x", "y"), evalFrame(scriptModes(call(0))[0], "x", "y")),
			fmt.Sprintf("RL.MULTI 2 x y SW %d 60 TB %d 1 1000 WITHDETAILS\r\n", limit, limit))
		var all sync.WaitGroup
		for i := range 12 {
			c := s.Dial()
			all.Go(func() {
				for n := range 100 {
					c.Send(packets[(i*7+n)%len(packets)])
					reply := c.Reply()
					for strings.HasPrefix(reply, "+") { // OK and QUEUED
						reply = c.Reply()
					}
					switch n := inproc.Numbers(reply); len(n) {
					case 2:
						require.Equal(t, n[0], n[1], "%q", reply)
					case 4:
						require.Equal(t, n[0], n[1], "%q", reply)
						require.Equal(t, n[2:], n[:2], "%q", reply)
					case 10:
						require.Equal(t, n[2], n[7], "%q", reply)
					case 15:
						require.Equal(t, n[7], n[12], "%q", reply)
					default:
						t.Errorf("%q", reply)
					}
				}
			})
		}
		all.Wait()
	})
}

// change is the effect of one script or transaction of TestScriptsAndTransactionsAreSequential:
// its place in the order of all, what it charged to each key, and what it saw left.
type change struct {
	place      int64
	took, left [3]int64
}

// TestScriptsAndTransactionsAreSequential: many clients change three keys together by scripts and
// transactions, each of which also takes a sequence number. When they are replayed in the order
// of the numbers against a model with three sums, each of them has seen the values of the model.
func TestScriptsAndTransactionsAreSequential(t *testing.T) {
	const limit, keys = 1_000_000, 3
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		body := fmt.Sprintf("local n = redis.call('sw.allow', 'number', %[1]d, 60)[3] "+
			"local a = redis.call('sw.allow', KEYS[1], %[1]d, 60, ARGV[4])[3] local b = redis.call('sw.allow', KEYS[2], %[1]d, 60, ARGV[5])[3] "+
			"local c = redis.call('sw.allow', KEYS[3], %[1]d, 60, ARGV[6])[3] return {n, a, b, c}", limit)
		modes := scriptModes(body)
		var mu sync.Mutex
		var changes []change
		var all sync.WaitGroup
		for i := range 10 {
			c := s.Dial()
			all.Go(func() {
				r := rand.New(rand.NewPCG(7, uint64(i)))
				for range 60 {
					var one change
					words := []string{"k0", "k1", "k2"}
					tx := fmt.Sprintf("MULTI\r\nSW.ALLOW number %d 60\r\n", limit)
					for k := range keys {
						one.took[k] = r.Int64N(3)
						words = append(words, fmt.Sprint(one.took[k]))
						tx += fmt.Sprintf("SW.ALLOW k%d %d 60 %d\r\n", k, limit, one.took[k])
					}
					if mode := r.IntN(4); mode < 3 {
						c.Command(append([]string{"EVAL", modes[mode], "3", "k0", "k1", "k2"}, words...)...)
					} else {
						c.Send(tx + "EXEC\r\n")
					}
					reply := c.Reply()
					for strings.HasPrefix(reply, "+") {
						reply = c.Reply()
					}
					n := inproc.Numbers(reply)
					if len(n) == 20 {
						n = []int64{n[2], n[7], n[12], n[17]}
					}
					require.Len(t, n, 4, "%q", reply)
					one.place = limit - n[0]
					copy(one.left[:], n[1:])
					mu.Lock()
					changes = append(changes, one)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		slices.SortFunc(changes, func(a, b change) int { return int(a.place - b.place) })
		left := [keys]int64{limit, limit, limit}
		for i, c := range changes {
			require.EqualValues(t, i+1, c.place)
			for k := range left {
				left[k] -= c.took[k]
			}
			require.Equal(t, left, c.left, "change %d", i)
		}
	})
}

// TestBusyScript: a script that does not end blocks all other clients. After busy-reply-threshold
// they get an error, and may kill the script.
func TestBusyScript(t *testing.T) {
	s := inproc.Step(t)
	c, other, third := s.Dial(), s.Dial(), s.Dial()
	require.Equal(t, inproc.OK, third.Do("WATCH", "w"))
	require.Equal(t, "-NOTBUSY No scripts in execution right now.\r\n", other.Do("SCRIPT", "KILL"))
	c.Command("EVAL", "redis.pcall('get', 'k') "+endless, "0")
	s.Clock.AwaitTimers(1)
	other.Command("PING")
	s.Clock.Advance(5 * time.Second)
	require.Equal(t, busyReply, other.Reply())
	require.Equal(t, busyReply, other.Do("SHUTDOWN"))
	require.Equal(t, busyReply, other.Do("GET", "k"))
	require.Equal(t, "-ERR wrong number of arguments for 'get' command\r\n", other.Do("GET"))
	other.Dialogue([2]string{"MULTI", inproc.OK}, [2]string{"PING", busyReply},
		[2]string{"EXEC", "-EXECABORT Transaction discarded because of: " + busyReply[1:]})
	fresh := s.Dial() // a client that connects now gets the error as well
	require.Equal(t, busyReply, fresh.Do("PING"))
	third.Send("UNWATCH\r\nPING\r\n") // UNWATCH needs the store, so it waits
	require.Equal(t, inproc.OK, other.Do("SCRIPT", "KILL"))
	require.True(t, strings.HasPrefix(c.Reply(), killedReply))
	third.Expect(inproc.OK, inproc.Pong)
	require.Equal(t, inproc.Pong, other.Do("PING"))
	require.Equal(t, inproc.Pong, c.Do("PING"))
	require.Equal(t, ":1\r\n", c.Do("EVAL", "for i = 1, 3 do end return 1", "0"), "after a kill")
}

// TestScriptThatHasWrittenIsKilledByShutdownOnly: a client cannot kill a script that has written,
// but SHUTDOWN can. Its changes are then not kept.
func TestScriptThatHasWrittenIsKilledByShutdownOnly(t *testing.T) {
	flags := []string{"--dir", t.TempDir(), "--appendonly", "yes"}
	s := inproc.Step(t, flags...)
	c, other, waiting := s.Dial(), s.Dial(), s.Dial()
	require.Equal(t, inproc.Five(0, 5, 4, -1, 1), c.Do("CL.THROTTLE", "before", "4", "1", "1"))
	c.Command("EVAL", "redis.call('cl.throttle', 'half', 4, 1, 1) redis.log(redis.LOG_WARNING, 'it has written') "+endless, "0")
	s.Clock.AwaitTimers(1)
	s.Log.Await("a script logged a message")
	waiting.Command("PING")
	s.Clock.Advance(5 * time.Second)
	require.Equal(t, busyReply, waiting.Reply())
	require.Equal(t, unkillable, other.Do("SCRIPT", "KILL"))
	other.Command("SHUTDOWN", "NOSAVE")
	other.ExpectEnd()
	s.End()
	s = inproc.Step(t, flags...)
	require.Equal(t, ":1\r\n", s.Dial().Do("EXISTS", "before", "half"))
}

// TestStopWhileAScriptRuns: a server that stops waits for a script as long as for any client, and
// then ends it. Its changes are not kept.
func TestStopWhileAScriptRuns(t *testing.T) {
	for name, script := range map[string]string{
		"reads":  endless,
		"writes": "redis.call('cl.throttle', 'half', 4, 1, 1) " + endless,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := []string{"--dir", t.TempDir(), "--save", "3600 1", "--shutdown-timeout", "1"}
			s := inproc.Step(t, flags...)
			c, waiting := s.Dial(), s.Dial()
			require.Equal(t, inproc.Five(0, 5, 4, -1, 1), c.Do("CL.THROTTLE", "before", "4", "1", "1"))
			require.Equal(t, inproc.OK, c.Do("SAVE"))
			c.Command("EVAL", script, "0")
			s.Clock.AwaitTimers(1)
			waiting.Command("PING")
			s.End()
			s = inproc.Step(t, flags...)
			require.Equal(t, ":1\r\n", s.Dial().Do("EXISTS", "before", "half"))
		})
	}
}

// TestScriptOfAClientThatLeaves: a script runs to its end although its client disconnects, and
// its changes are kept.
func TestScriptOfAClientThatLeaves(t *testing.T) {
	s := inproc.Step(t)
	for _, leave := range []func(c *inproc.Client){
		func(c *inproc.Client) { _ = c.Close() },
		func(c *inproc.Client) {
			s.Clock.Advance(5 * time.Second)
			require.Equal(t, busyReply, s.Dial().Do("PING"))
		},
	} {
		c, other := s.Dial(), s.Dial()
		require.Equal(t, inproc.OK, c.Do("WATCH", "w"))
		c.Send("MULTI\r\n" + string(inproc.Encode(nil, "EVAL", endless, "0")) + "CL.THROTTLE left 4 1 1000\r\nEXEC\r\n")
		c.Expect(inproc.OK, inproc.Queued, inproc.Queued)
		s.Clock.AwaitTimers(1)
		leave(c)
		s.Clock.Advance(5 * time.Second)
		require.Equal(t, inproc.OK, other.Do("SCRIPT", "KILL"))
		require.Equal(t, ":1\r\n", other.Do("EXISTS", "left"))
		require.Equal(t, inproc.OK, other.Do("FLUSHALL"))
	}
}

// TestScriptIsOneRecord: the changes of a script are logged as one record, whichever way the
// script ran, and a restart restores them.
func TestScriptIsOneRecord(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--appendonly", "yes")
		c := s.Dial()
		for i, script := range scriptModes("redis.call('cl.throttle', KEYS[1], 4, 1, 1) redis.call('sw.allow', KEYS[2], 5, 60) return redis.call('expire', KEYS[1], 100)") {
			c.Send(evalFrame(script, fmt.Sprint("a", i), fmt.Sprint("b", i)))
			c.Expect(":1\r\n")
			require.Equal(t, fmt.Sprint(i+1), c.Info("rdb_changes_since_last_save"))
		}
		require.NoError(t, s.Stop())
		s.Restart()
		require.Equal(t, ":6\r\n", s.Dial().Do("EXISTS", "a0", "b0", "a1", "b1", "a2", "b2"))
		require.Equal(t, ":100\r\n", s.Dial().Do("TTL", "a2"))
	})
}

// TestScriptsInTheBackgroundKeepOrderAndAtomicity: many clients run scripts that take longer than
// a loop waits for, some of them in pipelines. No change is lost or seen halfway, and commands
// after a script are answered after it.
func TestScriptsInTheBackgroundKeepOrderAndAtomicity(t *testing.T) {
	const turns, clients, rounds = 3000, 6, 10
	script := fmt.Sprintf("local i = 0 repeat i = i + 1 redis.call('incr', KEYS[1]) until i == %d return tonumber(redis.call('get', KEYS[1]))", turns)
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		var all sync.WaitGroup
		for range clients {
			c := s.Dial()
			all.Go(func() {
				for range rounds {
					c.Send(evalFrame(script, "n") + "PING\r\n" + evalFrame(script, "n") + "ECHO x\r\n")
					first := inproc.Numbers(c.Reply())[0]
					c.Expect(inproc.Pong)
					second := inproc.Numbers(c.Reply())[0]
					c.Expect(inproc.Bulk("x"))
					require.Zero(t, first%turns)
					require.Zero(t, second%turns)
					require.Less(t, first, second)
				}
			})
		}
		all.Wait()
		require.Equal(t, inproc.Bulk(fmt.Sprint(turns*clients*rounds*2)), s.Dial().Do("GET", "n"))
	})
}

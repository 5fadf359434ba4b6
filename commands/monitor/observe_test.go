package monitor_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/stats"
)

// slowWords returns the arguments of all entries of SLOWLOG, the newest first.
func slowWords(e *session.Engine) (all []string) {
	for _, e := range e.Slow.Newest(1000) {
		all = append(all, strings.Join(e.Args, " "))
	}
	return all
}

// TestSlowlogHidesSecrets: no entry of SLOWLOG has a password.
func TestSlowlogHidesSecrets(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--slowlog-log-slower-than", "0", "--requirepass", "canary")
		c := f.Dial()
		for _, call := range []string{
			"AUTH canary", "AUTH default canary", "HELLO 3 AUTH default canary SETNAME n", "HELLO 2 SETNAME auth AUTH default canary", "HELLO 2 AUTH canary",
			"ACL SETUSER u on >canary", "ACL GETUSER canary", "ACL DELUSER canary", "CONFIG SET requirepass canary", "CONFIG SET timeout 0 requirepass canary",
			"CONFIG SET masterauth canary", "CONFIG SET tls-key-file-pass canary",
			"CONFIG SET requirepas canary", "CONFIG SET canary requirepass", "CONFIG SET TimeOut 0 canary 1", "CONFIG SET timeout 0 canary", "CONFIG SET RequirePass canary canary",
			"CONFIG SET timeout requirepass canary x", "EVAL return(redis.call('config','set','requirepas',ARGV[1])) 0 x",
		} {
			c.Do(strings.Fields(call)...)
		}
		all := slowWords(f.Engine())
		require.Len(t, all, 19)
		require.NotContains(t, strings.Join(all, "\n"), "canary")
		require.Contains(t, all, "ACL SETUSER (redacted) (redacted) (redacted)")
		require.Contains(t, all, "ACL DELUSER (redacted)")
		require.Contains(t, all, "HELLO 3 AUTH (redacted) (redacted) SETNAME n")
		require.Contains(t, all, "CONFIG SET timeout 0 requirepass (redacted)")
		require.Contains(t, all, "CONFIG SET TimeOut 0 (redacted) (redacted)")
		require.Contains(t, all, "CONFIG SET (redacted) (redacted)")
	})
}

// TestSlowlogHasCommandsThatWaitOnceTheyAreAnswered: after their reply, SLOWLOG has a BLPOP, a
// script that continued on another goroutine, a command that left its loop, and the commands of a
// transaction, but not EXEC.
func TestSlowlogHasCommandsThatWaitOnceTheyAreAnswered(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--slowlog-log-slower-than", "0")
		c, other := f.Dial(), f.Dial()
		c.Do("CLIENT", "SETNAME", "waiter")
		c.Command("BLPOP", "l", "0")
		w.Settle()
		require.Equal(t, "1", other.Info("blocked_clients"))
		require.NotContains(t, slowWords(f.Engine()), "BLPOP l 0")
		other.Do("RPUSH", "l", "x")
		c.Reply()
		require.Contains(t, slowWords(f.Engine()), "BLPOP l 0")

		c.Do("EVAL", "for i = 1, 100000 do end return 1", "0")
		all := slowWords(f.Engine())
		require.Equal(t, "EVAL for i = 1, 100000 do end return 1 0", all[0])
		require.Equal(t, "waiter", f.Engine().Slow.Newest(1)[0].Name)
		require.Equal(t, c.LocalAddr().String(), f.Engine().Slow.Newest(1)[0].Addr)

		words := []string{"RPUSH", "many"}
		for i := range 30_000 {
			words = append(words, fmt.Sprint(i))
		}
		c.Do(words...)
		require.True(t, strings.HasPrefix(slowWords(f.Engine())[0], "RPUSH many 0 1 2 "))
		require.True(t, strings.HasSuffix(slowWords(f.Engine())[0], "... (29971 more arguments)"))

		c.Do("MULTI")
		c.Do("SET", "k", "v")
		c.Do("EXEC")
		require.Equal(t, []string{"SET k v", "MULTI"}, slowWords(f.Engine())[:2])
		calls, _ := commandStat(c.Do("INFO", "commandstats"), "eval")
		require.EqualValues(t, 1, calls)
	})
}

// commandStat returns calls and microseconds of a command from INFO commandstats.
func commandStat(info, name string) (calls, usec int64) {
	_, line, _ := strings.Cut(info, "cmdstat_"+name+":")
	_, _ = fmt.Sscanf(line, "calls=%d,usec=%d", &calls, &usec)
	return calls, usec
}

// TestDebugSleepKeepsEverybodyWaiting: during DEBUG SLEEP other commands wait, as in Redis, and
// it is in SLOWLOG.
func TestDebugSleepKeepsEverybodyWaiting(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed("--enable-debug-command", "local", "--latency-monitor-threshold", "1", "--busy-reply-threshold", "0")
		c, other := f.Dial(), f.Dial()
		timers := clock.Timers()
		c.Command("DEBUG", "SLEEP", "5")
		w.Settle()
		require.Greater(t, clock.Timers(), timers, "it sleeps")
		other.Command("SET", "k", "v")
		w.Advance(5 * time.Second)
		require.Equal(t, "+OK\r\n", c.Reply())
		require.Equal(t, "+OK\r\n", other.Reply())
		require.Equal(t, "+OK\r\n", c.Do("DEBUG", "SLEEP", "nothing"))

		c.Do("MULTI")
		c.Do("DEBUG", "SLEEP", "0")
		c.Do("SET", "k", "w")
		require.Equal(t, "*2\r\n+OK\r\n+OK\r\n", c.Do("EXEC"))
	})
}

// TestDebugSleepIsBusyForOthers: after busy-reply-threshold other clients get the error BUSY, and
// may end the sleep.
func TestDebugSleepIsBusyForOthers(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed("--enable-debug-command", "local", "--busy-reply-threshold", "1")
		c, other := f.Dial(), f.Dial()
		timers := clock.Timers()
		c.Command("DEBUG", "SLEEP", "3600")
		w.Settle()
		require.Greater(t, clock.Timers(), timers, "it sleeps")
		w.Advance(time.Second)
		require.Contains(t, other.Do("GET", "k"), "-BUSY ")
		require.Equal(t, inproc.OK, other.Do("SCRIPT", "KILL"))
		require.NotEmpty(t, c.Reply())
		require.Equal(t, "$-1\r\n", other.Do("GET", "k"))
	})
}

// TestPipelinesAreTimedAsAWhole: of commands that arrive together a sample is timed, and LATENCY
// HISTOGRAM counts all of them.
func TestPipelinesAreTimedAsAWhole(t *testing.T) {
	c := inproc.OpenTimed(t)
	e := c.Server().Engine()
	for range 10 {
		c.Packet([]byte(strings.Repeat("PING\r\n", 100)))
	}
	calls, usec := commandStat(c.Do("INFO", "commandstats"), "ping")
	require.EqualValues(t, 1000, calls)
	require.Positive(t, usec)
	require.Contains(t, c.Do("LATENCY", "HISTOGRAM", "ping"), inproc.Bulk("calls")+":1000\r\n")

	c.Do("CONFIG", "SET", "slowlog-max-len", "10000", "slowlog-log-slower-than", "0")
	c.Do("SLOWLOG", "RESET")
	c.Packet([]byte(strings.Repeat("PING\r\n", 100)))
	require.Len(t, slowWords(e), 101, "with a low threshold every call is timed")
	c.Do("CONFIG", "SET", "latency-tracking", "no")
	c.Do("CONFIG", "RESETSTAT")
	c.Do("PING")
	require.Equal(t, "*0\r\n", c.Do("LATENCY", "HISTOGRAM", "ping"))
}

// TestPipelinesAreTimedByWhatCallsFind: of calls that read few elements a sample is timed, calls
// that read many are each timed, and a call that leaves the loop has its own entry in SLOWLOG.
func TestPipelinesAreTimedByWhatCallsFind(t *testing.T) {
	c := inproc.OpenTimed(t, "--slowlog-log-slower-than", "1000")
	e := c.Server().Engine()
	pipeline := func(n int, args ...string) {
		c.Packet([]byte(strings.Repeat(string(inproc.Encode(nil, args...)), n)))
	}
	timed := func(name string) int64 { // scaled up to the calls that timed calls stand for
		took, _ := e.Durations(e.Commands.Find([]byte(name)).ID)
		return took.Calls
	}
	pipeline(32, "ZREMRANGEBYSCORE", "none", "-inf", "+inf")
	require.Contains(t, []int64{1 + 16, 1 + 2*16}, timed("zremrangebyscore"), "the first one, and one or two for sixteen each")

	for i := range 10 {
		elements := []string{"RPUSH", "list"}
		for j := range 100 {
			elements = append(elements, strconv.Itoa(100*i+j))
		}
		c.Do(elements...)
	}
	for range 5 {
		pipeline(7, "LRANGE", "list", "0", "-1")
	}
	require.EqualValues(t, 35, timed("lrange"))

	for i := range 20 {
		big := []string{"ZADD", "big"}
		for j := range 2500 {
			big = append(big, strconv.Itoa(i), fmt.Sprintf("member:%d:%d", i, j))
		}
		c.Do(big...)
	}
	c.Do("SLOWLOG", "RESET")
	c.Packet([]byte(strings.Repeat(string(inproc.Encode(nil, "ZREMRANGEBYSCORE", "none", "0", "1")), 9) + string(inproc.Encode(nil, "ZREMRANGEBYSCORE", "big", "-inf", "+inf"))))
	require.Contains(t, slowWords(e), "ZREMRANGEBYSCORE big -inf +inf")
}

// TestBatchThatTakesLongIsEnteredAsItsCostliestCommand: a batch whose commands exceed the
// threshold only together is entered in SLOWLOG as its costliest command.
func TestBatchThatTakesLongIsEnteredAsItsCostliestCommand(t *testing.T) {
	c := inproc.OpenTimed(t, "--slowlog-log-slower-than", "1000")
	e := c.Server().Engine()
	long := strings.Repeat("x", 200)
	for threshold := 1000; !slices.ContainsFunc(slowWords(e), func(words string) bool { // single commands may be slow as well
		return strings.HasPrefix(words, "EXISTS "+long[:128]+"... (72 more bytes)")
	}); {
		threshold = max(1, threshold*9/10) // so that the speed of the machine does not matter
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "slowlog-log-slower-than", strconv.Itoa(threshold)))
		var batch []byte
		for i := range 31 {
			batch = append(batch, inproc.Encode(nil, "EXISTS", strings.Repeat("k ", 1+i%3))...)
		}
		batch = append(batch, inproc.Encode(nil, append([]string{"EXISTS"}, strings.Fields(strings.Repeat(long+" ", 200))...)...)...)
		c.Packet(batch)
	}
}

// slowDisk is a disk on which every write and fsync takes three milliseconds.
type slowDisk struct{ persistence.FS }

type slowFile struct{ persistence.File }

func (d slowDisk) Create(name string) (persistence.File, error) {
	f, err := d.FS.Create(name)
	return slowFile{f}, err
}

func (d slowDisk) Append(name string) (persistence.File, error) {
	f, err := d.FS.Append(name)
	return slowFile{f}, err
}

func (f slowFile) Write(b []byte) (int, error) {
	<-time.After(3 * time.Millisecond)
	return f.File.Write(b)
}

func (f slowFile) Sync() error {
	<-time.After(3 * time.Millisecond)
	return f.File.Sync()
}

// TestLatencyHasWritesAndFsyncsThatTakeLong: LATENCY has the writes and fsyncs of a slow disk.
func TestLatencyHasWritesAndFsyncsThatTakeLong(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.StartWith(func(o *server.Options) { o.FS = slowDisk{faultfs.New()} },
			"--appendonly", "yes", "--appendfsync", "always", "--latency-monitor-threshold", "2")
		w.Advance(time.Second) // loading has ended
		require.Equal(t, "+OK\r\n", f.Dial().Do("SET", "k", "v"))
		for _, e := range []stats.Event{stats.WriteEvent, stats.SyncEvent} {
			event, ok := f.Engine().Events.Of(e)
			require.True(t, ok, e.String())
			require.GreaterOrEqual(t, event.Worst, int64(3), e.String())
		}
	})
}

// TestMonitorShowsCommandsAsRedisDoes: MONITOR shows the lines of Redis, and no secret.
func TestMonitorShowsCommandsAsRedisDoes(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		m, c := f.Dial(), f.Dial()
		require.Equal(t, "+OK\r\n", m.Do("MONITOR"))
		addr := regexp.QuoteMeta(c.LocalAddr().String())
		line := func(db, from, words string) string {
			return `^\+\d+\.\d{6} \[` + db + " " + from + `\]` + words + "\r\n$"
		}
		shows := func(lines ...string) {
			t.Helper()
			for _, want := range lines {
				require.Regexp(t, want, m.Reply())
			}
		}
		for _, p := range []struct {
			call  []string
			lines []string
		}{
			{[]string{"SET", "a \"\\\n\x00é", "b"}, []string{line("0", addr, regexp.QuoteMeta(` "SET" "a \"\\\n\x00\xc3\xa9" "b"`))}},
			{[]string{"AUTH", "user", "secret"}, []string{line("0", addr, ` "AUTH" "\(redacted\)" "\(redacted\)"`)}},
			{[]string{"HELLO", "2", "AUTH", "user", "secret"}, []string{line("0", addr, ` "HELLO" "2" "AUTH" "\(redacted\)" "\(redacted\)"`)}},
			{[]string{"CONFIG", "SET", "requirepass", ""}, nil},
			{[]string{"SLOWLOG", "LEN"}, nil},
			{[]string{"GET"}, nil}, // refused
			{[]string{"SELECT", "3"}, []string{line("3", addr, ` "SELECT" "3"`)}},
			{[]string{"EVAL", "redis.call('GET', 'l') return 1", "0"}, []string{line("3", addr, ` "EVAL" ".*" "0"`), line("3", "lua", ` "GET" "l"`)}},
			{[]string{"MULTI"}, []string{line("3", addr, ` "MULTI"`)}},
			{[]string{"INCR", "x"}, nil},
			{[]string{"EXEC"}, []string{line("3", addr, ` "INCR" "x"`), line("3", addr, ` "EXEC"`)}},
			{[]string{"EVAL", "for i = 1, 100000 do end return redis.call('GET', 'm')", "0"}, []string{line("3", addr, ` "EVAL" ".*" "0"`), line("3", "lua", ` "GET" "m"`)}},
		} {
			c.Do(p.call...)
			shows(p.lines...)
		}
		require.Contains(t, c.Do("CLIENT", "LIST"), "flags=O ")

		require.Equal(t, "-ERR Replica can't interact with the keyspace\r\n", m.Do("GET", "a"))
		require.Equal(t, "+RESET\r\n", m.Do("RESET"))
		c.Do("SET", "after", "x")
		require.Equal(t, "$-1\r\n", m.Do("GET", "nothing"))
		require.Zero(t, f.Engine().Halts.Load())

		m.Do("MONITOR")
		require.NoError(t, m.Close())
		w.Settle()
		require.Zero(t, f.Engine().Halts.Load())
	})
}

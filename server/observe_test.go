package server_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/stats"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// slowWords returns the arguments of all entries of SLOWLOG, the newest first.
func slowWords(f *fixture) (all []string) {
	for _, e := range f.Engine().Slow.Newest(1000) {
		all = append(all, strings.Join(e.Args, " "))
	}
	return all
}

// TestSlowlogHidesSecrets wants no password in any entry.
func TestSlowlogHidesSecrets(t *testing.T) {
	f := start(t, "auto", "--slowlog-log-slower-than", "0", "--requirepass", "canary")
	c := f.dial()
	for _, call := range []string{
		"AUTH canary", "AUTH default canary", "HELLO 3 AUTH default canary SETNAME n", "HELLO 2 SETNAME auth AUTH default canary", "HELLO 2 AUTH canary",
		"ACL SETUSER u on >canary", "ACL GETUSER canary", "ACL DELUSER canary", "CONFIG SET requirepass canary", "CONFIG SET timeout 0 requirepass canary",
		"CONFIG SET masterauth canary", "CONFIG SET tls-key-file-pass canary",
		"CONFIG SET requirepas canary", "CONFIG SET canary requirepass", "CONFIG SET TimeOut 0 canary 1", "CONFIG SET timeout 0 canary", "CONFIG SET RequirePass canary canary",
		"CONFIG SET timeout requirepass canary x", "EVAL return(redis.call('config','set','requirepas',ARGV[1])) 0 x",
	} {
		c.do(strings.Fields(call)...)
	}
	all := slowWords(f)
	require.Len(t, all, 19)
	require.NotContains(t, strings.Join(all, "\n"), "canary")
	require.Contains(t, all, "ACL SETUSER (redacted) (redacted) (redacted)")
	require.Contains(t, all, "ACL DELUSER (redacted)")
	require.Contains(t, all, "HELLO 3 AUTH (redacted) (redacted) SETNAME n")
	require.Contains(t, all, "CONFIG SET timeout 0 requirepass (redacted)")
	require.Contains(t, all, "CONFIG SET TimeOut 0 (redacted) (redacted)")
	require.Contains(t, all, "CONFIG SET (redacted) (redacted)")
}

// TestSlowlogHasCommandsThatWaitOnceTheyAreAnswered: a BLPOP, a script that goes on elsewhere,
// a command that leaves its loop, and those of a transaction, but not EXEC.
func TestSlowlogHasCommandsThatWaitOnceTheyAreAnswered(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--slowlog-log-slower-than", "0")
		c, other := f.dial(), f.dial()
		c.do("CLIENT", "SETNAME", "waiter")
		c.command("BLPOP", "l", "0")
		eventually(t, "waits", func() bool { return other.info("blocked_clients") == "1" })
		require.NotContains(t, slowWords(f), "BLPOP l 0")
		other.do("RPUSH", "l", "x")
		c.reply()
		require.Contains(t, slowWords(f), "BLPOP l 0")

		c.do("EVAL", "for i = 1, 100000 do end return 1", "0")
		all := slowWords(f)
		require.Equal(t, "EVAL for i = 1, 100000 do end return 1 0", all[0])
		require.Equal(t, "waiter", f.Engine().Slow.Newest(1)[0].Name)
		require.Equal(t, c.LocalAddr().String(), f.Engine().Slow.Newest(1)[0].Addr)

		words := []string{"RPUSH", "many"}
		for i := range 30_000 {
			words = append(words, fmt.Sprint(i))
		}
		c.do(words...)
		require.True(t, strings.HasPrefix(slowWords(f)[0], "RPUSH many 0 1 2 "))
		require.True(t, strings.HasSuffix(slowWords(f)[0], "... (29971 more arguments)"))

		c.do("MULTI")
		c.do("SET", "k", "v")
		c.do("EXEC")
		require.Equal(t, []string{"SET k v", "MULTI"}, slowWords(f)[:2])
		calls, _ := commandStat(c, "eval")
		require.EqualValues(t, 1, calls)
	})
}

// commandStat returns calls and microseconds of INFO commandstats.
func commandStat(c *client, name string) (calls, usec int64) {
	_, _ = fmt.Sscanf(c.info("cmdstat_"+name), "calls=%d,usec=%d", &calls, &usec)
	return calls, usec
}

// TestDebugSleepKeepsEverybodyWaiting: other commands wait, as in Redis, and it is noted as
// slow.
func TestDebugSleepKeepsEverybodyWaiting(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--enable-debug-command", "local", "--latency-monitor-threshold", "1", "--busy-reply-threshold", "0")
		c, other := f.dial(), f.dial()
		timers := f.clock.Timers()
		c.command("DEBUG", "SLEEP", "5")
		eventually(t, "sleeps", func() bool { return f.clock.Timers() > timers })
		other.command("SET", "k", "v")
		f.clock.Advance(5 * time.Second)
		require.Equal(t, "+OK\r\n", c.reply())
		require.Equal(t, "+OK\r\n", other.reply())
		require.Equal(t, "+OK\r\n", c.do("DEBUG", "SLEEP", "nothing"))

		c.do("MULTI")
		c.do("DEBUG", "SLEEP", "0")
		c.do("SET", "k", "w")
		require.Equal(t, "*2\r\n+OK\r\n+OK\r\n", c.do("EXEC"))
	})
}

// TestDebugSleepIsBusyForOthers: after the threshold they are told so, and may end it.
func TestDebugSleepIsBusyForOthers(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--enable-debug-command", "local", "--busy-reply-threshold", "1")
		c, other := f.dial(), f.dial()
		timers := f.clock.Timers()
		c.command("DEBUG", "SLEEP", "3600")
		eventually(t, "sleeps", func() bool { return f.clock.Timers() > timers })
		f.clock.Advance(time.Second)
		eventually(t, "others are told", func() bool { return strings.HasPrefix(other.do("GET", "k"), "-BUSY ") })
		require.Equal(t, okReply, other.do("SCRIPT", "KILL"))
		require.NotEmpty(t, c.reply())
		require.Equal(t, "$-1\r\n", other.do("GET", "k"))
	})
}

// TestPipelinesAreTimedAsAWhole: of commands that arrive together a sample is timed, and
// LATENCY HISTOGRAM shows all of them.
func TestPipelinesAreTimedAsAWhole(t *testing.T) {
	f := start(t, "auto")
	c := f.dial()
	for range 10 {
		c.send(strings.Repeat("PING\r\n", 100))
		for range 100 {
			c.reply()
		}
	}
	calls, usec := commandStat(c, "ping")
	require.EqualValues(t, 1000, calls)
	require.Positive(t, usec)
	require.Contains(t, c.do("LATENCY", "HISTOGRAM", "ping"), bulk("calls")+":1000\r\n")

	c.do("CONFIG", "SET", "slowlog-max-len", "10000", "slowlog-log-slower-than", "0")
	c.do("SLOWLOG", "RESET")
	c.send(strings.Repeat("PING\r\n", 100))
	for range 100 {
		c.reply()
	}
	require.Len(t, slowWords(f), 101, "with a low threshold every call is timed")
	c.do("CONFIG", "SET", "latency-tracking", "no")
	c.do("CONFIG", "RESETSTAT")
	c.do("PING")
	require.Equal(t, "*0\r\n", c.do("LATENCY", "HISTOGRAM", "ping"))
}

// TestPipelinesAreTimedByWhatCallsFind: of calls that find little a sample is timed, of those
// that find much each one, and what leaves the loop is in SLOWLOG by itself.
func TestPipelinesAreTimedByWhatCallsFind(t *testing.T) {
	f := start(t, "auto", "--slowlog-log-slower-than", "1000")
	c := f.dial()
	pipeline := func(n int, args ...string) {
		c.send(strings.Repeat(string(frame(args...)), n))
		for range n {
			c.reply()
		}
	}
	timed := func(name string) int64 { // with those that timed ones stand for
		e := f.Engine()
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
		c.do(elements...)
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
		c.do(big...)
	}
	c.do("SLOWLOG", "RESET")
	c.send(strings.Repeat(string(frame("ZREMRANGEBYSCORE", "none", "0", "1")), 9) + string(frame("ZREMRANGEBYSCORE", "big", "-inf", "+inf")))
	for range 10 {
		c.reply()
	}
	require.Contains(t, slowWords(f), "ZREMRANGEBYSCORE big -inf +inf")
}

// TestBatchThatTakesLongIsEnteredAsItsCostliestCommand uses a threshold that many commands
// exceed together.
func TestBatchThatTakesLongIsEnteredAsItsCostliestCommand(t *testing.T) {
	f := start(t, "auto", "--slowlog-log-slower-than", "1000")
	c := f.dial()
	long := strings.Repeat("x", 200)
	threshold := 1000
	eventually(t, "a batch takes as long as the threshold", func() bool {
		threshold = max(1, threshold*9/10) // how fast the machine is decides nothing
		require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "slowlog-log-slower-than", strconv.Itoa(threshold)))
		var batch strings.Builder
		for i := range 31 {
			batch.Write(frame("EXISTS", strings.Repeat("k ", 1+i%3)))
		}
		batch.Write(frame(append([]string{"EXISTS"}, strings.Fields(strings.Repeat(long+" ", 200))...)...))
		c.send(batch.String())
		for range 32 {
			c.reply()
		}
		return slices.ContainsFunc(slowWords(f), func(words string) bool { // others may be slow by themselves
			return strings.HasPrefix(words, "EXISTS "+long[:128]+"... (72 more bytes)")
		})
	})
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

// TestLatencyHasWritesAndFsyncsThatTakeLong uses a slow disk.
func TestLatencyHasWritesAndFsyncsThatTakeLong(t *testing.T) {
	f := startOnDisk(t, "auto", slowDisk{faultfs.New()}, func() {}, "--dir", "/data", "--appendonly", "yes", "--appendfsync", "always", "--latency-monitor-threshold", "2")
	eventually(t, "loaded", func() bool { return !f.Engine().Loading() })
	require.Equal(t, "+OK\r\n", f.dial().do("SET", "k", "v"))
	for _, e := range []stats.Event{stats.WriteEvent, stats.SyncEvent} {
		eventually(t, e.String(), func() bool {
			s, ok := f.Engine().Events.Of(e)
			return ok && s.Worst >= 2
		})
	}
}

// TestMonitorShowsCommandsAsRedisDoes has the lines of Redis, and no secret.
func TestMonitorShowsCommandsAsRedisDoes(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		m, c := f.dial(), f.dial()
		require.Equal(t, "+OK\r\n", m.do("MONITOR"))
		addr := regexp.QuoteMeta(c.LocalAddr().String())
		line := func(db, from, words string) string {
			return `^\+\d+\.\d{6} \[` + db + " " + from + `\]` + words + "\r\n$"
		}
		shows := func(lines ...string) {
			t.Helper()
			for _, want := range lines {
				require.Regexp(t, want, m.reply())
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
			c.do(p.call...)
			shows(p.lines...)
		}
		require.Contains(t, c.do("CLIENT", "LIST"), "flags=O ")

		require.Equal(t, "-ERR Replica can't interact with the keyspace\r\n", m.do("GET", "a"))
		require.Equal(t, "+RESET\r\n", m.do("RESET"))
		c.do("SET", "after", "x")
		require.Equal(t, "$-1\r\n", m.do("GET", "nothing"))
		require.Zero(t, f.Engine().Halts.Load())

		m.do("MONITOR")
		require.NoError(t, m.Close())
		eventually(t, "nobody monitors", func() bool { return f.Engine().Halts.Load() == 0 })
	})
}

// TestMonitorThatReadsNothingIsCutOff: what waits for it is bounded, and nobody else is
// disturbed.
func TestMonitorThatReadsNothingIsCutOff(t *testing.T) {
	f := start(t, "auto", "--client-output-buffer-limit", "pubsub 1mb 1mb 1", "--client-output-backlog", "16kb")
	m, c := f.dial(), f.dial()
	require.Equal(t, "+OK\r\n", m.do("MONITOR"))
	value := strings.Repeat("x", 100_000)
	eventually(t, "cut off", func() bool {
		require.Equal(t, "+OK\r\n", c.do("SET", "k", value))
		return f.Engine().Halts.Load() == 0
	})
	require.Less(t, f.Engine().ClientMemory(), int64(4<<20))
}

// TestMonitorShowsScriptsOfManyCallsInBoundedMemory: what a script calls is counted where it
// is too much to be shown.
func TestMonitorShowsScriptsOfManyCallsInBoundedMemory(t *testing.T) {
	var l stats.Lines
	for range 200_000 {
		l.Add(stats.Source{Addr: "lua"}, stats.Words([][]byte{[]byte("GET"), []byte(strings.Repeat("k", 100))}))
	}
	require.LessOrEqual(t, l.Size(), 9<<20)
	text := string(l.Take(1_000_001))
	require.Regexp(t, `\+1\.000001 \[0 monitor\] \.\.\. \(\d+ more commands\)\r\n$`, text)
	require.Zero(t, l.Size())

	long := stats.Words([][]byte{make([]byte, 10<<20), []byte("x")})
	require.Less(t, len(long), 300<<10)
	require.Contains(t, string(long), "... (10420224 more bytes) ... (1 more arguments)")
}

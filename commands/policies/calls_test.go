package policies_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
)

// TestPoliciesAndTransactions: RL.USE in EXEC uses the policies at the time of EXEC, and commands
// that change policies are refused when they are queued. WATCH covers the state of keys but not
// policies.
func TestPoliciesAndTransactions(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c, other := f.Dial(), f.Dial()
		other.Set(hour)
		queue := func(calls ...string) {
			c.Set("MULTI")
			for _, words := range calls {
				require.Equal(t, "+QUEUED\r\n", c.Say(words))
			}
		}
		queue("RL.USE api k", "RL.USE api k 2 WITHDETAILS", "RL.EXPLAIN none k", "RL.USE api k")
		other.Set("RL.POLICY SET api LIMITS SW 20 3600 FIXED ANCHOR FIRST CL 9 1 3600")
		require.Equal(t, ":0\r\n", other.Say("EXISTS api:k"))
		nine := func(left int64) string { return inproc.Five(0, 10, left, -1, 3600*(10-left)) }
		require.Equal(t, inproc.Array(nine(9), "*2\r\n"+nine(7)+"*2\r\n"+inproc.Five(0, 20, 17, -1, 3600)+nine(7), "-NOPOLICY No such policy 'none'\r\n", nine(6)), c.Say("EXEC"))
		queue("RL.USE api k", "SET s 1")
		require.Equal(t, ":1\r\n", other.Say("RL.POLICY DEL api"))
		require.Equal(t, inproc.Array("-NOPOLICY No such policy 'api'\r\n", inproc.OK), c.Say("EXEC"))
		for _, words := range append(append([]string{}, changing...), showing...) {
			c.Set("MULTI")
			require.Contains(t, c.Say(words), "not allowed inside a transaction", words)
			require.Contains(t, c.Say("EXEC"), "-EXECABORT")
		}

		other.Set(hour)
		for _, step := range []struct {
			watch, call string
			runs        bool
		}{
			{"api:w", "RL.USE api w", false},
			{"api:w", "RL.USE api w PEEK", true},
			{"api:w", "RL.USE api w 0", true},
			{"api:w", "RL.USE api w 100", true}, // the call is denied
			{"api:w", "RL.EXPLAIN api w", true},
			{"api:w", "RL.POLICY SET api LIMITS SW 11 3600 FIXED ANCHOR FIRST", true},
			{"api:w", "RL.BLOCK api w EX 9", true},
			{"main/api", "RL.POLICY SET api LIMITS SW 10 3600 FIXED ANCHOR FIRST", true},
		} {
			c.Set("WATCH " + step.watch)
			queue("PING")
			require.NotContains(t, other.Say(step.call), "-ERR")
			want := "*-1\r\n"
			if step.runs {
				want = inproc.Array("+PONG\r\n")
			}
			require.Equal(t, want, c.Say("EXEC"), step)
		}
	})
}

// TestPoliciesInScripts: a script can use policies, also with names that it computes, and can
// change none.
func TestPoliciesInScripts(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		c.Set("RL.POLICY SET api LIMITS SW 10 3600 FIXED ANCHOR FIRST TB 20 1 3600")
		require.Equal(t, inproc.Five(0, 10, 9, -1, 3600), c.Do("EVAL", "return redis.call('RL.USE', 'api', ARGV[1])", "0", "k"))
		require.Equal(t, inproc.Five(0, 10, 8, -1, 7200), c.Do("EVAL", "return redis.call('RL.USE', KEYS[1], 'k', 1)", "1", "api"))
		require.Equal(t, ":54\r\n", c.Do("EVAL", "local n = 0 for i = 0, 9 do n = n + i * redis.call('RL.USE', 'api', 'loop'..i, i + 2)[1] + redis.call('RL.USE', 'api', 'loop'..i, 0)[1] + i end return n", "0"))
		require.Equal(t, inproc.Bulk("NOPOLICY No such policy 'none'"), c.Do("EVAL", "return redis.pcall('RL.USE', 'none', 'k')['err']", "0"))
		require.Contains(t, c.Do("EVAL", "return redis.call('RL.EXPLAIN', 'api', 'k')", "0"), inproc.Bulk("answer")+inproc.Five(0, 10, 8, -1, 7200))
		require.Contains(t, c.Do("EVAL", "#!lua flags=no-writes\nreturn redis.call('RL.USE', 'api', 'k')", "0"), "-ERR Write commands are not allowed from read-only scripts")
		require.Contains(t, c.Do("EVAL_RO", "return redis.call('RL.EXPLAIN', 'api', 'k')", "0"), inproc.Bulk("answer"))
		for _, words := range append(append([]string{}, changing...), showing...) {
			call := "'" + strings.Join(strings.Fields(words), "','") + "'"
			require.Contains(t, c.Do("EVAL", "return redis.call("+call+")", "0"), "This Redis command is not allowed from script", words)
		}
		require.Equal(t, 1, strings.Count(c.Say("RL.CHANGES COUNT 100"), inproc.Bulk("id")))
	})
}

// TestPoliciesWhenMemoryIsFull: with full memory a key can still be blocked, and entries can be
// deleted. Other changes that need memory are refused and change nothing.
func TestPoliciesWhenMemoryIsFull(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		c.Set(hour, "RL.OVERRIDE SET api there LIMITS TB 1 1 1", "RL.EXEMPT api out EX 100", "RL.BLOCK api in EX 100", "RL.POLICY SET goes LIMITS TB 1 1 1",
			"RL.POLICY TRY api LIMITS TB 1 1 1")
		require.Contains(t, c.Say("RL.USE api k"), "*5\r\n:0\r\n")
		dump := c.Say("RL.POLICY DUMP")
		c.Set("CONFIG SET maxmemory 1")
		for _, words := range []string{
			"RL.OVERRIDE SET api new LIMITS TB 1 1 1", "RL.POLICY SET new LIMITS TB 1 1 1", "RL.BOOST api new 2 EX 9",
			"RL.EXEMPT api new EX 9", "RL.POLICY TRY goes LIMITS TB 2 1 1", "RL.USE api new",
		} {
			require.Contains(t, c.Say(words), "-OOM ", words)
		}
		require.Contains(t, c.Do("RL.POLICY", "APPLY", "policies:\n  large:\n    limits: [TB 1 1 1]\n"), "-OOM ")
		require.Equal(t, dump, c.Say("RL.POLICY DUMP"))
		require.Contains(t, c.Say("RL.EXPLAIN new k"), "-NOPOLICY")
		require.Equal(t, inproc.Five(0, 10, 8, -1, 3600), c.Say("RL.USE api k"), "its state is there")
		for i := range 100 {
			c.Set(fmt.Sprintf("RL.BLOCK api abuser%d* EX 100 REASON %s", i, strings.Repeat("x", 1000)))
		}
		require.Equal(t, inproc.Five(1, 10, 0, 100, 100), c.Say("RL.USE api abuser7x"))
		for _, words := range []string{"RL.UNBLOCK api in", "RL.UNEXEMPT api out", "RL.OVERRIDE DEL api there", "RL.POLICY DEL goes"} {
			require.Equal(t, ":1\r\n", c.Say(words))
		}
		c.Set("RL.POLICY TRY api OFF")
		require.Equal(t, inproc.Array(inproc.Bulk("api")), c.Say("RL.POLICY LIST"))
		c.Set("CONFIG SET maxmemory 0", "RL.OVERRIDE SET api new LIMITS TB 7 1 1")
		require.Contains(t, c.Say("RL.USE api new"), "*5\r\n:0\r\n:7\r\n")
	})
}

// TestWhatFreesPassesFarBeyondFullMemory: far beyond full memory even a block is refused, but
// commands that end or delete an entry succeed.
func TestWhatFreesPassesFarBeyondFullMemory(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		c.Set(hour, "RL.OVERRIDE SET api there LIMITS TB 1 1 1", "RL.EXEMPT api out EX 100", "RL.BLOCK api in EX 100", "RL.BOOST api up 2 EX 100",
			"RL.POLICY SET goes LIMITS TB 1 1 1", "RL.POLICY SET left LIMITS TB 1 1 1", "RL.POLICY TRY api LIMITS TB 1 1 1")
		for _, key := range []string{"a", "b"} { // more than the reserve for calls that have begun
			require.Equal(t, inproc.OK, c.Do("SET", key, strings.Repeat("x", 20<<20)))
		}
		c.Set("CONFIG SET maxmemory 1")
		require.Contains(t, c.Say("RL.BLOCK api abuser EX 100"), "-OOM ")
		for _, words := range []string{"RL.UNBLOCK api in", "RL.UNEXEMPT api out", "RL.UNBOOST api up", "RL.OVERRIDE DEL api there", "RL.POLICY DEL goes"} {
			require.Equal(t, ":1\r\n", c.Say(words), words)
		}
		c.Set("RL.POLICY TRY api OFF")
		require.Equal(t, ":1\r\n", c.Do("RL.POLICY", "APPLY", "policies:\n  api:\n    limits: [SW 10 3600 FIXED ANCHOR FIRST]\n"))
		require.Contains(t, c.Say("RL.POLICY DUMP"), "api")
		require.NotContains(t, c.Say("RL.POLICY DUMP"), "there")
		require.Equal(t, inproc.Array(inproc.Bulk("api")), c.Say("RL.POLICY LIST"))
	})
}

// TestPoliciesOnAFullDisk: a change that cannot be logged is refused. Once the log can be written
// again, the policies in memory and on disk are the same.
func TestPoliciesOnAFullDisk(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--appendonly", "yes")
		c := f.Dial()
		c.Set("SET k 1")
		f.FillDisk(true)
		reply := c.Say(hour)
		require.Contains(t, reply, "-MISCONF")
		for _, words := range changing[6:] {
			require.NotContains(t, c.Say(words), "+OK", words)
		}
		require.Contains(t, c.Say("RL.POLICY SET second LIMITS TB 1 1 1"), "-MISCONF Errors writing to the AOF file: No space left on device\r\n")
		require.Contains(t, c.Say("RL.USE second k"), "-NOPOLICY")
		f.FillDisk(false)
		w.Until("healed", time.Second, time.Minute, func() bool { return c.Info("aof_last_write_status") == "ok" })
		c.Set("RL.POLICY SET third LIMITS SW 3 3600 FIXED ANCHOR FIRST")
		require.Equal(t, inproc.Five(0, 3, 2, -1, 3600), c.Say("RL.USE third k"))
		list := c.Say("RL.POLICY LIST")
		require.Equal(t, list, w.StartOn(f.Left(), "--appendonly", "yes").Dial().Say("RL.POLICY LIST"))
	})
}

// TestHostileWords: whatever bytes are in names, keys, patterns and texts, and however long they
// are, the reply is an error or the requested result, and the records can be read again.
func TestHostileWords(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--appendonly", "yes")
		c := f.Dial()
		c.Set(hour)
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		long := strings.Repeat("x", 1<<20)
		for _, name := range []string{"", "a:b", "a b", "a#2", "a*", "ä", "a\x00", "a/b", string(every), strings.Repeat("n", 65), long} {
			for _, words := range [][]string{
				{"RL.POLICY", "SET", name, "LIMITS", "TB", "1", "1", "1"},
				{"RL.POLICY", "GET", name},
				{"RL.POLICY", "TRY", name, "OFF"},
				{"RL.OVERRIDE", "SET", name, "p", "LIMITS", "TB", "1", "1", "1"},
				{"RL.BLOCK", name, "p", "EX", "9"},
				{"RL.USE", name, "k"},
				{"RL.EXPLAIN", name, "k"},
			} {
				reply := c.Do(words...)
				require.Equal(t, "-", reply[:1], "%.40q", words)
				require.Less(t, len(reply), 500, "%.40q", words)
			}
			require.Equal(t, ":0\r\n", c.Do("RL.POLICY", "DEL", name))
			require.Equal(t, ":0\r\n", c.Do("RL.UNBLOCK", name, "p"))
		}
		for _, pattern := range []string{"", strings.Repeat("p", 1025), long} {
			require.Contains(t, c.Do("RL.BLOCK", "api", pattern, "EX", "9"), "-ERR a pattern has 1 to 1024 bytes")
			require.Contains(t, c.Do("RL.OVERRIDE", "SET", "api", pattern, "LIMITS", "TB", "1", "1", "1"), "-ERR a pattern has")
		}
		for _, comment := range []string{string(every), "a\nb", "\x7f", "\xff", strings.Repeat("c", 1025), long, "\u0085"} {
			require.Contains(t, c.Do("RL.POLICY", "SET", "api", "COMMENT", comment, "LIMITS", "TB", "1", "1", "1"), "-ERR a comment has")
			require.Contains(t, c.Do("RL.BLOCK", "api", "k", "EX", "9", "REASON", comment), "-ERR a comment has")
		}
		for n, want := range map[int]string{0: "-ERR no clause", 16: "+OK", 17: "-ERR too many clauses", 5000: "-ERR too many clauses"} {
			words := []string{"RL.POLICY", "SET", "wide", "LIMITS"}
			for range n {
				words = append(words, "TB", "1", "1", "1")
			}
			if n == 0 {
				words = append(words, "x")
				want = "-ERR syntax error near 'x'"
			}
			require.Contains(t, c.Do(words...), want)
		}
		for _, seconds := range []string{"0", "-1", "x", "9223372036854775807", "1.5", "", "99999999999999999999"} {
			require.Equal(t, "-", c.Do("RL.BLOCK", "api", "k", "EX", seconds)[:1], seconds)
		}
		for _, factor := range []string{"0", "-1", "1e3", "1000.001", "0.0001", "NaN", "inf", "", "1.", ".5", "99999"} {
			require.Contains(t, c.Do("RL.BOOST", "api", "k", factor, "EX", "9"), "-ERR a factor is from 0.001 to 1000", factor)
		}
		for _, key := range []string{strings.Repeat("k", 65_520), long} {
			require.Equal(t, "-", c.Do("RL.USE", "api", key)[:1], "%.40q", key)
		}
		for _, key := range []string{"", "#", "#1", "k#007", "k#0", "k#17", "k#20", "#2x", "2", string(every)} {
			require.Contains(t, c.Do("RL.USE", "api", key), "*5\r\n:0\r\n:10\r\n:9\r\n", "%.40q", key)
			require.Equal(t, ":1\r\n", c.Do("DEL", "api:"+key), "%.40q", key)
		}
		for _, key := range []string{"k#2", "#16", "k#10", "k#9", "\x00#3", "k#2#"} {
			require.Contains(t, c.Do("RL.USE", "api", key), "*5\r\n:0\r\n:10\r\n:9\r\n", "%.40q", key)
			require.Equal(t, ":1\r\n", c.Do("DEL", "api:"+key+"#"), "%.40q", key)
		}

		limitOf := map[string]int{}
		for i, pattern := range []string{string(every), "#1", "k#", "\x00", "\r\n", "*", "a*b", "a**", "ä", "'\"\\", strings.Repeat("p", 1024)} {
			require.Equal(t, inproc.OK, c.Do("RL.OVERRIDE", "SET", "api", pattern, "COMMENT", "'\"\\ äß{}:#", "LIMITS", "SW", fmt.Sprint(100+i), "3600", "FIXED", "ANCHOR", "FIRST"))
			require.Equal(t, inproc.OK, c.Do("RL.EXEMPT", "api", "e"+pattern[:min(len(pattern), 1000)], "EX", "1000", "REASON", "'\"\\ äß"))
			limitOf[pattern] = 100 + i
		}
		check := func(c *inproc.Client) {
			t.Helper()
			for pattern, n := range limitOf {
				require.Equal(t, inproc.Five(0, int64(n), int64(n), -1, 0), c.Do("RL.USE", "api", pattern, "0"), "%.40q", pattern)
				require.Contains(t, c.Do("RL.EXPLAIN", "api", pattern), inproc.Bulk("key")+inproc.Bulk(pattern))
			}
		}
		check(c)
		require.Contains(t, c.Say("RL.CHANGES COUNT 1000"), inproc.Bulk("pattern")+inproc.Bulk(string(every)), "no byte is another one")
		dump := c.Say("RL.POLICY DUMP")
		text := dump[strings.Index(dump, "\r\n")+2 : len(dump)-2]
		require.Equal(t, "$0\r\n\r\n", c.Do("RL.POLICY", "DIFF", text))
		require.Equal(t, ":0\r\n", c.Do("RL.POLICY", "APPLY", text))
		kept := w.StartOn(f.Left(), "--appendonly", "yes").Dial()
		check(kept)
		require.Equal(t, dump, kept.Say("RL.POLICY DUMP"))
		require.Equal(t, c.Say("RL.CHANGES COUNT 1000"), kept.Say("RL.CHANGES COUNT 1000"))
	})
}

// manyPolicies returns a document with n policies.
func manyPolicies(n int) string {
	var b strings.Builder
	b.WriteString("policies:\n")
	for i := range n {
		fmt.Fprintf(&b, "  p%05d: {limits: [TB 3 1 60]}\n", i)
	}
	return b.String()
}

// TestHostileYAML: a text that is too long, or expands to more than it says, changes nothing,
// takes little time, and gets a short error.
func TestHostileYAML(t *testing.T) {
	effort.Alone(t)
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		c.Set(hour)
		history := c.Say("RL.CHANGES")
		bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
		for i := range 20 {
			bomb += fmt.Sprintf("b%d: &b%d [*a, *a, *a, *a]\n", i, i)
		}
		var many, lines strings.Builder
		many.WriteString("policies:\n")
		for i := range 10_001 {
			fmt.Fprintf(&many, "  p%d: {limits: [TB 1 1 1]}\n", i)
		}
		lines.WriteString("policies:\n")
		for range 100_000 {
			lines.WriteString("  a: 1\n")
		}
		for name, text := range map[string]string{
			"empty": "", "no document": "---\n", "null": "policies:\n", "a list": "[]", "bytes": "policies:\n  \xff: 1\n", "zero": "\x00",
			"a bomb": bomb, "a merge": "policies:\n  a: &a {limits: [TB 1 1 1]}\n  b: {<<: *a}\n", "too many": many.String(),
			"twice": "policies:\n  a: {limits: [TB 1 1 1]}\n  a: {limits: [TB 1 1 1]}\n", "many faults": lines.String(),
			"too long": "policies:\n" + strings.Repeat("#", 1<<20), "deep": strings.Repeat("[", 100_000), "wide": "policies: {" + strings.Repeat("a,", 200_000),
			"tag": "policies: !!python/object:os.system\n", "two": "policies:\n  a: {limits: [TB 1 1 1]}\n---\npolicies:\n",
			"late": "policies:\n  a: {limits: [TB 1 1 1], overrides: {k: {limits: [TB 1 1 1], expires: 99999-01-01T00:00:00Z}}}\n",
			"name": "policies:\n  'a:b': {limits: [TB 1 1 1]}\n", "key": "policies:\n  ? [a, b]\n  : {limits: [TB 1 1 1]}\n",
		} {
			for _, command := range []string{"APPLY", "DIFF"} {
				reply := c.Do("RL.POLICY", command, text)
				require.Equal(t, "-ERR ", reply[:min(len(reply), 5)], "%s: %.100s", name, reply)
				require.Less(t, len(reply), 2000, name)
			}
		}
		require.Equal(t, history, c.Say("RL.CHANGES"))
		require.Equal(t, inproc.Array(inproc.Bulk("api")), c.Say("RL.POLICY LIST"))
		whole := manyPolicies(10_000)
		require.Equal(t, ":10001\r\n", c.Do("RL.POLICY", "APPLY", whole+strings.Repeat("#", 1<<20-len(whole))), "and api goes")
		require.Contains(t, c.Say("RL.USE p09999 k"), "*5\r\n:0\r\n:3\r\n")
		require.Contains(t, c.Say("RL.POLICY SET another LIMITS TB 1 1 1"), "-ERR too many policies")
	})
}

// TestRepliesAboutPoliciesAreWhole: replies about policies are complete in both protocols.
func TestRepliesAboutPoliciesAreWhole(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		c.Set("RL.POLICY SET bare LIMITS TB 1 1 1", "RL.POLICY SET full MS SHADOW COUNT COMMENT c LIMITS TB 2 1 1 SW 3 4 CL 5 6 7 CC 8 9",
			"RL.POLICY TRY full LIMITS TB 3 1 1 CC 1 1", "RL.OVERRIDE SET full o* EX 9 COMMENT c LIMITS TB 1 1 1 SW 1 1", "RL.OVERRIDE SET full p LIMITS NONE",
			"RL.BOOST full b* 2.5 EX 9", "RL.BLOCK full x EX 9 REASON r", "RL.EXEMPT full e EX 9", "SET full:wrong text")
		for _, protocol := range []string{"2", "3"} {
			c.Do("HELLO", protocol)
			for _, name := range []string{"bare", "full", "none"} {
				for _, words := range []string{"RL.POLICY GET " + name, "RL.OVERRIDE LIST " + name, "RL.CHANGES POLICY " + name, "RL.POLICY LIST", "RL.POLICY DUMP"} {
					c.Say(words)
					require.Equal(t, "+PONG\r\n", c.Say("PING"), words)
				}
				for _, key := range []string{"k", "o1", "p", "b1", "x", "e", "wrong"} {
					for _, words := range []string{"RL.EXPLAIN %s %s", "RL.EXPLAIN %s %s 100", "RL.EXPLAIN %s %s 0", "RL.EXPLAIN %s %s -1", "RL.USE %s %s MEMBER m WITHDETAILS"} {
						words = fmt.Sprintf(words, name, key)
						reply := c.Say(words)
						require.Equal(t, name == "none" || name == "full" && key == "wrong", reply[0] == '-', "%s: %s", words, reply)
						require.Equal(t, "+PONG\r\n", c.Say("PING"), words)
					}
				}
			}
		}
	})
}

// TestPausesHoldChangesOfPolicies: CLIENT PAUSE WRITE delays commands that change policies, but
// not those that show them.
func TestPausesHoldChangesOfPolicies(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		c.Set(hour, "CLIENT PAUSE 1000000 WRITE")
		var waits []*inproc.Client
		for i, words := range []string{"RL.BLOCK api k EX 9", "RL.USE api j", "RL.POLICY SET api LIMITS SW 7 3600 FIXED"} {
			waits = append(waits, f.Dial())
			waits[i].Command(strings.Fields(words)...)
			w.Settle()
			require.Equal(t, fmt.Sprint(i+1), c.Info("blocked_clients"))
		}
		inproc.Silent(waits...)
		require.Contains(t, c.Say("RL.EXPLAIN api k"), inproc.Bulk("default"))
		require.Contains(t, c.Say("RL.POLICY GET api"), "SW 10 3600")
		c.Set("CLIENT UNPAUSE")
		waits[0].Expect(inproc.OK)
		require.Contains(t, waits[1].Reply(), "*5\r\n:0\r\n")
		waits[2].Expect(inproc.OK)
		require.Contains(t, c.Say("RL.EXPLAIN api k"), inproc.Bulk("block"))
	})
}

// TestRandomWords: no arguments of RL.USE or of the commands about policies crash the server.
func TestRandomWords(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		rng := rand.New(rand.NewPCG(10, 16))
		words := []string{
			"api", "other", "k", "k*", "*", "", "\x00\xff", "1", "0", "-1", "9223372036854775807", "-9223372036854775808", "1.5", "MS", "SHADOW",
			"COMMENT", "REASON", "LIMITS", "EX", "TB", "SW", "CL", "CC", "FIXED", "LOG", "INIT", "DEBT", "PEEK", "PARTIAL", "FORCE", "WAIT",
			"MEMBER", "WITHDETAILS", "OFF", "COUNT", "POLICY", "10", "60", "policies:", "ANCHOR", "KEY", "INTERVAL", "NONE", "AND", "ANY",
			"KEEP", "CLASS", "30%", "100%", "batch", "BLOCK", "BAN", "FACTOR", "MAX", "NOTIFY", "80%", "LIMIT", "rls.a",
		}
		names := []string{
			"RL.USE", "RL.USE", "RL.USE", "RL.EXPLAIN", "RL.POLICY SET", "RL.POLICY SET", "RL.POLICY GET", "RL.POLICY LIST", "RL.POLICY DEL",
			"RL.POLICY TRY", "RL.POLICY DUMP", "RL.POLICY DIFF", "RL.POLICY APPLY", "RL.POLICY RELOAD", "RL.OVERRIDE SET", "RL.OVERRIDE DEL",
			"RL.OVERRIDE LIST", "RL.BOOST", "RL.UNBOOST", "RL.BLOCK", "RL.UNBLOCK", "RL.EXEMPT", "RL.UNEXEMPT", "RL.CHANGES", "RL.POLICY", "RL.OVERRIDE",
		}
		answered := 0
		for i := range effort.Steps(8_000, 200_000) {
			if i%500 == 0 {
				c.Do("FLUSHALL")
				c.Set("RL.POLICY SET api CLASS batch KEEP 30% LIMITS TB 10 1 60 SW 10 60 LOG CC 2 60 CL 3 1 60 BAN 50 60 60", "RL.POLICY SET other LIMITS TB 10 1 60 DEBT")
				w.Advance(time.Second)
			}
			call := strings.Fields(names[rng.IntN(len(names))])
			for range rng.IntN(9) {
				call = append(call, words[rng.IntN(len(words))])
			}
			reply := c.Do(call...)
			require.NotContains(t, reply, "-ERR internal", "%q", call)
			if reply[0] != '-' {
				answered++
			}
		}
		require.Greater(t, answered, 200)
		require.Less(t, f.Now(), limit.MaxInstant)
	})
}

// TestCallsOfAPolicyAreCounted: each answered call of a policy is counted once, by its answer,
// whatever has decided it and however long it has waited. A call that charges nothing is not
// counted.
func TestCallsOfAPolicyAreCounted(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		c.Set("RL.POLICY SET api LIMITS TB 1 1 5 SW 1000 86400 FIXED")
		c.Set("RL.POLICY SET one LIMITS TB 1 1 5")
		counts := func(policy string, allowed, denied int) {
			t.Helper()
			require.Contains(t, c.Say("RL.POLICY GET "+policy), fmt.Sprintf("$7\r\nallowed\r\n:%d\r\n$6\r\ndenied\r\n:%d\r\n", allowed, denied))
		}
		for _, policy := range []string{"api", "one"} {
			use := "RL.USE " + policy + " k"
			counts(policy, 0, 0)
			c.Say(use)
			c.Say(use)
			counts(policy, 1, 1)
			c.Say(use + " PEEK")
			c.Say(use + " 0")
			counts(policy, 1, 1)
			c.Say(use + " 1 BLOCK 60")
			counts(policy, 2, 1)
			c.Say(use + " 1 BLOCK 1")
			counts(policy, 2, 2)
			c.Set("RL.BLOCK " + policy + " k EX 60")
			c.Say(use)
			counts(policy, 2, 3)
			c.Set("RL.EXEMPT " + policy + " k EX 60")
			c.Say(use)
			counts(policy, 3, 3)
			c.Say(use + " -1")
			counts(policy, 3, 3)
		}
	})
}

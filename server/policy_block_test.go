package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// three is a policy with a limit of each of three families, and threeCall one that waits for it.
const three = "RL.POLICY SET api LIMITS SW 2 60 FIXED ANCHOR FIRST CC 2 60 TB 2 1 60"

func threeCall(member string) string { return "RL.USE api k BLOCK 0 MEMBER " + member }

// queued has clients wait, one behind the other. Each takes a place under several keys.
func (f *fixture) queued(calls ...string) (conns []*client) {
	f.t.Helper()
	c := f.dial()
	before := c.info("blocked_clients")
	var n int
	_, _ = fmt.Sscan(before, &n)
	for i, call := range calls {
		w := f.dial()
		w.command(strings.Fields(call)...)
		eventually(f.t, "it waits", func() bool { return c.info("blocked_clients") == fmt.Sprint(n+i+1) })
		conns = append(conns, w)
	}
	return conns
}

// nobodyWaits wants the server to have forgotten all who waited.
func (f *fixture) nobodyWaits() {
	f.t.Helper()
	eventually(f.t, "nobody waits", func() bool {
		_, blocked := f.Engine().CountClients() // it counts one that is being closed a moment longer
		return blocked == 0 && f.Keyspace().Waiting() == 0 && f.clock.Timers() == 0
	})
}

// TestUseWaitsForAllItsClauses: whichever clause is full, whatever makes room in it lets the
// first in, and those behind it in the order in which they came.
func TestUseWaitsForAllItsClauses(t *testing.T) {
	for name, c := range map[string]struct{ fill, room []string }{
		"window, time":   {[]string{"SW.ALLOW api:k 2 60 2 FIXED ANCHOR FIRST"}, []string{"+60"}},
		"window, DEL":    {[]string{"SW.ALLOW api:k 2 60 2 FIXED ANCHOR FIRST"}, []string{"DEL api:k"}},
		"window, refund": {[]string{"SW.ALLOW api:k 2 60 2 FIXED ANCHOR FIRST"}, []string{"SW.ALLOW api:k 2 60 -2 FIXED ANCHOR FIRST"}},
		"window, expire": {[]string{"SW.ALLOW api:k 2 60 2 FIXED ANCHOR FIRST"}, []string{"EXPIRE api:k 5", "+5"}},
		"lease, release": {[]string{"CC.ACQUIRE api:k#2 2 600 a", "CC.ACQUIRE api:k#2 2 600 b"}, []string{"CC.RELEASE api:k#2 a", "CC.RELEASE api:k#2 b"}},
		"lease, time":    {[]string{"CC.ACQUIRE api:k#2 2 60 a", "CC.ACQUIRE api:k#2 2 60 b"}, []string{"+60"}},
		"lease, DEL":     {[]string{"CC.ACQUIRE api:k#2 2 600 a", "CC.ACQUIRE api:k#2 2 600 b"}, []string{"DEL api:k#2"}},
		"bucket, time":   {[]string{"TB.ACQUIRE api:k#3 2 1 60 2"}, []string{"+60", "+60"}},
		"bucket, refund": {[]string{"TB.ACQUIRE api:k#3 2 1 60 2"}, []string{"TB.ACQUIRE api:k#3 2 1 60 -2"}},
		"bucket, FLUSH":  {[]string{"TB.ACQUIRE api:k#3 2 1 60 2"}, []string{"FLUSHALL"}},
		"two of them":    {[]string{"TB.ACQUIRE api:k#3 2 1 60 2", "SW.ALLOW api:k 2 60 2 FIXED ANCHOR FIRST"}, []string{"DEL api:k", "DEL api:k#3"}},
		"in EXEC":        {[]string{"SW.ALLOW api:k 2 60 2 FIXED ANCHOR FIRST"}, []string{"MULTI", "DEL api:k", "EXEC"}},
		"RL.USE -2":      {[]string{"SW.ALLOW api:k 2 60 2 FIXED ANCHOR FIRST"}, []string{"RL.USE api k -2 MEMBER none"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, "auto")
			c0 := f.dial()
			c0.set(three)
			for _, words := range c.fill {
				require.Contains(t, c0.say(words), "*5\r\n:0\r\n")
			}
			conns := f.queued(threeCall("m1"), threeCall("m2"), threeCall("m3"))
			silent(t, conns...)
			for i, words := range c.room {
				silent(t, conns[1:]...)
				if seconds, is := strings.CutPrefix(words, "+"); is {
					d, err := time.ParseDuration(seconds + "s")
					require.NoError(t, err)
					f.clock.Advance(d - 1)
					silent(t, conns[i:]...)
					f.clock.Advance(1)
					continue
				}
				require.NotContains(t, c0.say(words), "-ERR")
			}
			for _, w := range conns[:2] {
				require.Contains(t, w.reply(), "*5\r\n:0\r\n:2\r\n")
			}
			silent(t, conns[2])
			require.NoError(t, conns[2].Close())
			f.nobodyWaits()
		})
	}
}

// TestUseInLineWithOthers: under each of its keys a call waits with others, and all pass in the
// order in which they came. Nobody waits for somebody who is gone.
func TestUseInLineWithOthers(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		c.set("RL.POLICY SET api LIMITS SW 1 60 FIXED ANCHOR FIRST CC 1 600", "RL.POLICY SET one LIMITS SW 1 60 FIXED ANCHOR FIRST")
		require.Contains(t, c.say("SW.ALLOW api:k 1 60 FIXED ANCHOR FIRST"), "*5\r\n:0\r\n")
		window, lease := "SW.ALLOW api:k 1 60 FIXED ANCHOR FIRST BLOCK 0", "CC.ACQUIRE api:k#2 1 600 x BLOCK 0"
		conns := f.queued(window, "RL.USE api k BLOCK 0 MEMBER a", window, lease, "RL.USE api k BLOCK 0 MEMBER b WITHDETAILS")
		require.Equal(t, 1, f.clock.Timers(), "only the first in line has one")
		f.clock.Advance(time.Minute)
		conns[0].expect(five(0, 1, 0, -1, 60))
		silent(t, conns[1:]...)
		require.NoError(t, conns[1].Close())
		conns[3].expect(five(0, 1, 0, -1, 600)) // whom only that one kept waiting
		silent(t, conns[2], conns[4])
		f.clock.Advance(time.Minute)
		conns[2].expect(five(0, 1, 0, -1, 60))
		silent(t, conns[4])
		f.clock.Advance(time.Minute)
		silent(t, conns[4])
		require.Equal(t, ":1\r\n", c.say("CC.RELEASE api:k#2 x"))
		require.Equal(t, "*2\r\n"+five(0, 1, 0, -1, 600)+"*2\r\n"+five(0, 1, 0, -1, 60)+five(0, 1, 0, -1, 600), conns[4].reply())
		f.nobodyWaits()

		require.Contains(t, c.say("RL.USE one k"), "*5\r\n:0\r\n")
		conns = f.queued("RL.USE one k BLOCK 0", "RL.USE one k BLOCK 0 WITHDETAILS")
		f.clock.Advance(time.Minute)
		conns[0].expect(five(0, 1, 0, -1, 60))
		f.clock.Advance(time.Minute)
		require.Equal(t, "*2\r\n"+five(0, 1, 0, -1, 60)+"*1\r\n"+five(0, 1, 0, -1, 60), conns[1].reply())
		f.nobodyWaits()
	})
}

// TestUseStopsWaiting: at its timeout, by CLIENT UNBLOCK, when its user may no longer, when it
// is killed; and it has charged nothing then.
func TestUseStopsWaiting(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		admin := f.dial()
		admin.set(three)
		full := []string{"CC.ACQUIRE api:k#2 2 600 a", "CC.ACQUIRE api:k#2 2 600 b"}
		for _, words := range full {
			require.Contains(t, admin.say(words), "*5\r\n:0\r\n")
		}
		late := f.queued("RL.USE api k BLOCK 1.5 MEMBER m")[0]
		f.clock.Advance(1500*time.Millisecond - 1)
		silent(t, late)
		f.clock.Advance(1)
		late.expect(five(1, 2, 0, 599, 599))
		millis := f.queued("RL.USE api k MS BLOCK 20 MEMBER m")[0]
		f.clock.Advance(20 * time.Millisecond)
		millis.expect(five(1, 2, 0, 598_480, 598_480))
		for _, how := range []string{"", "TIMEOUT", "ERROR"} {
			w := f.dial()
			id := w.id()
			w.command(strings.Fields(threeCall("m"))...)
			eventually(t, "it waits", func() bool { return admin.info("blocked_clients") == "1" })
			require.Equal(t, ":1\r\n", admin.say("CLIENT UNBLOCK "+id+" "+how))
			if how == "ERROR" {
				w.expect("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")
			} else {
				w.expect(five(1, 2, 0, 599, 599))
			}
			require.Equal(t, "+PONG\r\n", w.say("PING"))
			w.command(strings.Fields(threeCall("m"))...)
			eventually(t, "it waits", func() bool { return admin.info("blocked_clients") == "1" })
			require.Equal(t, ":1\r\n", admin.say("CLIENT KILL ID "+id))
			w.expectEnd()
			f.nobodyWaits()
		}
		for _, lost := range []string{"resetkeys", "-rl.use", "resetkeys %R~*"} {
			app := f.asApp(admin, "+@all", "~*")
			app.command(strings.Fields(threeCall("m"))...)
			eventually(t, "it waits", func() bool { return admin.info("blocked_clients") == "1" })
			admin.set("ACL SETUSER app " + lost)
			require.Equal(t, ":1\r\n", admin.say("CC.RELEASE api:k#2 a"))
			require.Contains(t, app.reply(), "-NOPERM")
			require.Equal(t, "+PONG\r\n", app.say("PING"))
			require.Contains(t, admin.say(full[0]), "*5\r\n:0\r\n", "the place is free")
		}
		require.Equal(t, ":0\r\n", admin.say("EXISTS api:k api:k#3"), "nothing is charged")
		f.nobodyWaits()
	})
}

// TestUseDoesNotWait: where that is no use, where it is not possible, and where a call passes
// whatever there is.
func TestUseDoesNotWait(t *testing.T) {
	f := start(t, "auto")
	c := f.dial()
	c.set(three, "RL.POLICY SET quiet SHADOW LIMITS SW 1 60 FIXED ANCHOR FIRST TB 1 1 60",
		"RL.BLOCK api blocked EX 100", "RL.EXEMPT api exempt EX 100", "RL.POLICY SET rate LIMITS TB 1 1 60")
	for _, key := range []string{"k", "exempt"} {
		require.Contains(t, c.say("SW.ALLOW api:"+key+" 2 60 2 FIXED ANCHOR FIRST"), "*5\r\n:0\r\n")
	}
	for _, step := range [][2]string{
		{"RL.USE api blocked BLOCK 0 MEMBER m", five(1, 2, 0, 100, 100)},
		{"RL.USE api exempt BLOCK 0 MEMBER m", five(0, 2, 0, -1, 60)},
		{"RL.USE quiet k 5 BLOCK 0", five(0, 1, 1, -1, 0)},
		{"RL.USE api k 3 BLOCK 0 MEMBER m", five(1, 2, 0, -1, 60)},
		{"RL.USE api k 0 BLOCK 0 MEMBER m", five(0, 2, 0, -1, 60)},
		{"RL.USE api k PEEK BLOCK 0 MEMBER m", "-ERR syntax error near 'BLOCK'\r\n"},
		{"RL.USE api k BLOCK -1 MEMBER m", "-ERR timeout is negative\r\n"},
		{"RL.USE api k BLOCK x MEMBER m", "-ERR timeout is not a float or out of range\r\n"},
		{"RL.USE api k BLOCK MEMBER m", "-ERR syntax error near 'm'\r\n"},
		{"RL.USE api k BLOCK 0", "-ERR the policy has a CC clause, which needs MEMBER\r\n"},
		{"RL.USE none k BLOCK 0", "-NOPOLICY No such policy 'none'\r\n"},
	} {
		require.Equal(t, step[1], c.say(step[0]), step[0])
	}
	c.set("MULTI")
	for range 2 {
		require.Equal(t, "+QUEUED\r\n", c.say("RL.USE rate k BLOCK 0"))
	}
	require.Equal(t, "+QUEUED\r\n", c.say("RL.USE api k BLOCK 0 MEMBER m"))
	require.Equal(t, array(five(0, 1, 0, -1, 60), five(1, 1, 0, 60, 60), five(1, 2, 0, 60, 60)), c.say("EXEC"))
	require.Equal(t, five(1, 2, 0, 60, 60), c.do("EVAL", "return redis.call('RL.USE','api','k','BLOCK','0','MEMBER','m')", "0"))
	require.Zero(t, f.Keyspace().Waiting())
	require.Zero(t, f.clock.Timers())
}

// TestWaitsKeepTheLimitsThatTheyCameWith: a policy that changes, or goes, leaves alone who waits.
func TestWaitsKeepTheLimitsThatTheyCameWith(t *testing.T) {
	f := start(t, "auto")
	c := f.dial()
	c.set("RL.POLICY SET api LIMITS SW 1 60 FIXED ANCHOR FIRST TB 5 1 60")
	require.Contains(t, c.say("RL.USE api k"), "*5\r\n:0\r\n")
	conns := f.queued("RL.USE api k BLOCK 0", "RL.USE api k BLOCK 0")
	c.set("RL.POLICY SET api LIMITS SW 9 60 FIXED ANCHOR FIRST TB 9 1 60")
	silent(t, conns...)
	require.Equal(t, five(0, 9, 7, -1, 120), c.say("RL.USE api k"), "who does not wait passes by the new limits")
	f.clock.Advance(time.Minute)
	conns[0].expect(five(0, 1, 0, -1, 120))
	require.Equal(t, ":1\r\n", c.say("RL.POLICY DEL api"))
	f.clock.Advance(time.Minute)
	require.Contains(t, conns[1].reply(), "*5\r\n:0\r\n:1\r\n:0\r\n")
	f.nobodyWaits()
}

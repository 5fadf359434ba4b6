package policies_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/inproc"
)

// three is a policy with limits of three families, and threeCall is a call that waits for it.
const three = "RL.POLICY SET api LIMITS SW 2 60 FIXED ANCHOR FIRST CC 2 60 TB 2 1 60"

func threeCall(member string) string { return "RL.USE api k BLOCK 0 MEMBER " + member }

// line is a server with a stopped clock and clients that wait on it.
type line struct {
	*inproc.Node
	w     *inproc.World
	clock *clocktest.Clock
	t     *testing.T
}

func newLine(t *testing.T, w *inproc.World) *line {
	t.Helper()
	n, clock := w.StartStepped()
	return &line{n, w, clock, t}
}

// advance moves the clock, and returns when everything that was due is done.
func (l *line) advance(d time.Duration) {
	l.clock.Advance(d)
	l.w.Settle()
}

// queued makes clients wait in the given order. Each is in the queues of several keys.
func (l *line) queued(calls ...string) (conns []*inproc.Client) {
	l.t.Helper()
	_, before := l.Engine().CountClients()
	for i, call := range calls {
		c := l.Dial()
		l.queue(c, call)
		_, blocked := l.Engine().CountClients()
		require.Equal(l.t, before+int64(i)+1, blocked)
		conns = append(conns, c)
	}
	return conns
}

// queue makes a client wait.
func (l *line) queue(c *inproc.Client, call string) {
	l.t.Helper()
	c.Command(strings.Fields(call)...)
	l.w.Settle()
	_, blocked := l.Engine().CountClients()
	require.NotZero(l.t, blocked)
}

// nobodyWaits checks that no waiting call is left on the server.
func (l *line) nobodyWaits() {
	l.t.Helper()
	l.w.Settle()
	_, blocked := l.Engine().CountClients()
	require.Zero(l.t, blocked)
	require.Zero(l.t, l.Keyspace().Waiting())
	require.Zero(l.t, l.clock.Timers())
}

// TestUseWaitsForAllItsClauses: whichever clause is full, anything that makes room in it lets the
// first client pass, and the others after it in the order of their arrival.
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
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				f := newLine(t, w)
				c0 := f.Dial()
				c0.Set(three)
				for _, words := range c.fill {
					require.Contains(t, c0.Say(words), "*5\r\n:0\r\n")
				}
				conns := f.queued(threeCall("m1"), threeCall("m2"), threeCall("m3"))
				inproc.Silent(conns...)
				for i, words := range c.room {
					inproc.Silent(conns[1:]...)
					if seconds, is := strings.CutPrefix(words, "+"); is {
						d, err := time.ParseDuration(seconds + "s")
						require.NoError(t, err)
						f.advance(d - 1)
						inproc.Silent(conns[i:]...)
						f.advance(1)
						continue
					}
					require.NotContains(t, c0.Say(words), "-ERR")
				}
				for _, c := range conns[:2] {
					require.Contains(t, c.Reply(), "*5\r\n:0\r\n:2\r\n")
				}
				inproc.Silent(conns[2])
				require.NoError(t, conns[2].Close())
				f.nobodyWaits()
			})
		})
	}
}

// TestUseInLineWithOthers: a call waits in the queue of each of its keys, and all calls pass in
// the order of their arrival. No call waits for a client that has disconnected.
func TestUseInLineWithOthers(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := newLine(t, w)
		c := f.Dial()
		c.Set("RL.POLICY SET api LIMITS SW 1 60 FIXED ANCHOR FIRST CC 1 600", "RL.POLICY SET one LIMITS SW 1 60 FIXED ANCHOR FIRST")
		require.Contains(t, c.Say("SW.ALLOW api:k 1 60 FIXED ANCHOR FIRST"), "*5\r\n:0\r\n")
		window, lease := "SW.ALLOW api:k 1 60 FIXED ANCHOR FIRST BLOCK 0", "CC.ACQUIRE api:k#2 1 600 x BLOCK 0"
		conns := f.queued(window, "RL.USE api k BLOCK 0 MEMBER a", window, lease, "RL.USE api k BLOCK 0 MEMBER b WITHDETAILS")
		require.Equal(t, 1, f.clock.Timers(), "only the first in line has one")
		f.advance(time.Minute)
		conns[0].Expect(inproc.Five(0, 1, 0, -1, 60))
		inproc.Silent(conns[1:]...)
		require.NoError(t, conns[1].Close())
		conns[3].Expect(inproc.Five(0, 1, 0, -1, 600)) // only that call was in its way
		inproc.Silent(conns[2], conns[4])
		f.advance(time.Minute)
		conns[2].Expect(inproc.Five(0, 1, 0, -1, 60))
		inproc.Silent(conns[4])
		f.advance(time.Minute)
		inproc.Silent(conns[4])
		require.Equal(t, ":1\r\n", c.Say("CC.RELEASE api:k#2 x"))
		require.Equal(t, "*2\r\n"+inproc.Five(0, 1, 0, -1, 600)+"*2\r\n"+inproc.Five(0, 1, 0, -1, 60)+inproc.Five(0, 1, 0, -1, 600), conns[4].Reply())
		f.nobodyWaits()

		require.Contains(t, c.Say("RL.USE one k"), "*5\r\n:0\r\n")
		conns = f.queued("RL.USE one k BLOCK 0", "RL.USE one k BLOCK 0 WITHDETAILS")
		f.advance(time.Minute)
		conns[0].Expect(inproc.Five(0, 1, 0, -1, 60))
		f.advance(time.Minute)
		require.Equal(t, "*2\r\n"+inproc.Five(0, 1, 0, -1, 60)+"*1\r\n"+inproc.Five(0, 1, 0, -1, 60), conns[1].Reply())
		f.nobodyWaits()
	})
}

// TestUseStopsWaiting: a wait ends at its timeout, by CLIENT UNBLOCK, when the user loses the
// permission, and when the client is killed. It has charged nothing then.
func TestUseStopsWaiting(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := newLine(t, w)
		admin := f.Dial()
		admin.Set(three)
		full := []string{"CC.ACQUIRE api:k#2 2 600 a", "CC.ACQUIRE api:k#2 2 600 b"}
		for _, words := range full {
			require.Contains(t, admin.Say(words), "*5\r\n:0\r\n")
		}
		late := f.queued("RL.USE api k BLOCK 1.5 MEMBER m")[0]
		f.advance(1500*time.Millisecond - 1)
		inproc.Silent(late)
		f.advance(1)
		late.Expect(inproc.Five(1, 2, 0, 599, 599))
		millis := f.queued("RL.USE api k MS BLOCK 20 MEMBER m")[0]
		f.advance(20 * time.Millisecond)
		millis.Expect(inproc.Five(1, 2, 0, 598_480, 598_480))
		for _, how := range []string{"", "TIMEOUT", "ERROR"} {
			c := f.Dial()
			id := c.ID()
			f.queue(c, threeCall("m"))
			require.Equal(t, ":1\r\n", admin.Say("CLIENT UNBLOCK "+id+" "+how))
			if how == "ERROR" {
				c.Expect("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")
			} else {
				c.Expect(inproc.Five(1, 2, 0, 599, 599))
			}
			require.Equal(t, "+PONG\r\n", c.Say("PING"))
			f.queue(c, threeCall("m"))
			require.Equal(t, ":1\r\n", admin.Say("CLIENT KILL ID "+id))
			c.ExpectEnd()
			f.nobodyWaits()
		}
		for _, lost := range []string{"resetkeys", "-rl.use", "resetkeys %R~*"} {
			app := f.Dial().As(admin, "+@all", "~*")
			f.queue(app, threeCall("m"))
			admin.Set("ACL SETUSER app " + lost)
			require.Equal(t, ":1\r\n", admin.Say("CC.RELEASE api:k#2 a"))
			require.Contains(t, app.Reply(), "-NOPERM")
			require.Equal(t, "+PONG\r\n", app.Say("PING"))
			require.Contains(t, admin.Say(full[0]), "*5\r\n:0\r\n", "the place is free")
		}
		require.Equal(t, ":0\r\n", admin.Say("EXISTS api:k api:k#3"), "nothing is charged")
		f.nobodyWaits()
	})
}

// TestUseDoesNotWait: a call does not wait where waiting cannot help or is impossible, or where
// the call passes in any case.
func TestUseDoesNotWait(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := newLine(t, w)
		c := f.Dial()
		c.Set(three, "RL.POLICY SET quiet SHADOW LIMITS SW 1 60 FIXED ANCHOR FIRST TB 1 1 60",
			"RL.BLOCK api blocked EX 100", "RL.EXEMPT api exempt EX 100", "RL.POLICY SET rate LIMITS TB 1 1 60")
		for _, key := range []string{"k", "exempt"} {
			require.Contains(t, c.Say("SW.ALLOW api:"+key+" 2 60 2 FIXED ANCHOR FIRST"), "*5\r\n:0\r\n")
		}
		for _, step := range [][2]string{
			{"RL.USE api blocked BLOCK 0 MEMBER m", inproc.Five(1, 2, 0, 100, 100)},
			{"RL.USE api exempt BLOCK 0 MEMBER m", inproc.Five(0, 2, 0, -1, 60)},
			{"RL.USE quiet k 5 BLOCK 0", inproc.Five(0, 1, 1, -1, 0)},
			{"RL.USE api k 3 BLOCK 0 MEMBER m", inproc.Five(1, 2, 0, -1, 60)},
			{"RL.USE api k 0 BLOCK 0 MEMBER m", inproc.Five(0, 2, 0, -1, 60)},
			{"RL.USE api k PEEK BLOCK 0 MEMBER m", "-ERR syntax error near 'BLOCK'\r\n"},
			{"RL.USE api k BLOCK -1 MEMBER m", "-ERR timeout is negative\r\n"},
			{"RL.USE api k BLOCK x MEMBER m", "-ERR timeout is not a float or out of range\r\n"},
			{"RL.USE api k BLOCK MEMBER m", "-ERR syntax error near 'm'\r\n"},
			{"RL.USE api k BLOCK 0", "-ERR the policy has a CC clause, which needs MEMBER\r\n"},
			{"RL.USE none k BLOCK 0", "-NOPOLICY No such policy 'none'\r\n"},
		} {
			require.Equal(t, step[1], c.Say(step[0]), step[0])
		}
		c.Set("MULTI")
		for range 2 {
			require.Equal(t, "+QUEUED\r\n", c.Say("RL.USE rate k BLOCK 0"))
		}
		require.Equal(t, "+QUEUED\r\n", c.Say("RL.USE api k BLOCK 0 MEMBER m"))
		require.Equal(t, inproc.Array(inproc.Five(0, 1, 0, -1, 60), inproc.Five(1, 1, 0, 60, 60), inproc.Five(1, 2, 0, 60, 60)), c.Say("EXEC"))
		require.Equal(t, inproc.Five(1, 2, 0, 60, 60), c.Do("EVAL", "return redis.call('RL.USE','api','k','BLOCK','0','MEMBER','m')", "0"))
		require.Zero(t, f.Keyspace().Waiting())
		require.Zero(t, f.clock.Timers())
	})
}

// TestWaitsKeepTheLimitsThatTheyCameWith: calls that wait are not affected when their policy is
// changed or deleted.
func TestWaitsKeepTheLimitsThatTheyCameWith(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := newLine(t, w)
		c := f.Dial()
		c.Set("RL.POLICY SET api LIMITS SW 1 60 FIXED ANCHOR FIRST TB 5 1 60")
		require.Contains(t, c.Say("RL.USE api k"), "*5\r\n:0\r\n")
		conns := f.queued("RL.USE api k BLOCK 0", "RL.USE api k BLOCK 0")
		c.Set("RL.POLICY SET api LIMITS SW 9 60 FIXED ANCHOR FIRST TB 9 1 60")
		inproc.Silent(conns...)
		require.Equal(t, inproc.Five(0, 9, 7, -1, 120), c.Say("RL.USE api k"), "who does not wait passes by the new limits")
		f.advance(time.Minute)
		conns[0].Expect(inproc.Five(0, 1, 0, -1, 120))
		require.Equal(t, ":1\r\n", c.Say("RL.POLICY DEL api"))
		f.advance(time.Minute)
		require.Contains(t, conns[1].Reply(), "*5\r\n:0\r\n:1\r\n:0\r\n")
		f.nobodyWaits()
	})
}

package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/transport"
)

const epoch = limit.Instant(1_700_000_000 * int64(time.Second))

func newServer(t testing.TB) *remotedouble.Server {
	t.Helper()
	s, err := remotedouble.NewServer(epoch, 1, nil)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// newEmbedded returns an engine with its own keyspace, whose clock shows the same time.
func newEmbedded(t testing.TB) *session.Engine {
	t.Helper()
	s, err := inproc.New(epoch, []net.Listener{}, "--transport", "goroutine", "--databases", "1")
	require.NoError(t, err)
	t.Cleanup(func() {
		s.Engine().Close()
		s.Keyspace().Close()
	})
	return s.Engine()
}

func open(t testing.TB, e *session.Engine) *remotedouble.Session {
	t.Helper()
	c, err := remotedouble.Open(e)
	require.NoError(t, err)
	return c
}

// lines returns a pipeline of commands without quotes.
func lines(commands ...string) []byte { return []byte(strings.Join(commands, "\r\n") + "\r\n") }

// same feeds a pipeline to a server with a Remote double and to one with a keyspace, and requires
// the same replies.
func same(t testing.TB, in []byte) {
	t.Helper()
	got, over := open(t, newServer(t).Engine).Feed(in)
	want, isOver := open(t, newEmbedded(t)).Feed(in)
	require.True(t, bytes.Equal(want, got), "%s of %q", difference(want, got), in)
	require.Equal(t, isOver, over)
}

// difference shows where replies begin to differ.
func difference(want, got []byte) string {
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	from := max(0, at-100)
	return fmt.Sprintf("want %q\n got %q", want[from:min(len(want), at+100)], got[from:min(len(got), at+100)])
}

// throttle is a limiter call that is never refused.
const throttle = "CL.THROTTLE k 99 1 60"

// TestFlightIsOneSubmission: all asks of a batch are submitted together, and the replies come in
// order, with replies of commands that do not ask in between.
func TestFlightIsOneSubmission(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t)
		c := open(t, s.Engine)
		s.Double.Hold()
		in := lines("PING a", "EXISTS k", "PING b", "CL.THROTTLE k 0 1 60", "NONE", "CL.THROTTLE k 0 1 x", "TTL k", "PING c")
		rest, out, next := c.Turn(in, nil)
		require.Empty(t, rest)
		require.Equal(t, "$1\r\na\r\n", string(out), "what is before the first ask waits for nothing")
		require.Equal(t, transport.Park, next)
		require.Equal(t, 3, s.Double.Pending())
		all, blocked := s.CountClients()
		require.Equal(t, []int64{1, 0}, []int64{all, blocked}, "no command keeps the client waiting")
		s.Double.Release()
		synctest.Wait()
		require.True(t, c.Woken())
		out, over := c.Feed(nil)
		require.False(t, over)
		require.Equal(t, ":0\r\n$1\r\nb\r\n*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n-ERR unknown command 'NONE', with args beginning with: \r\n"+
			"-Cell error: Store error: Couldn't parse as integer: x\r\n:60\r\n$1\r\nc\r\n", string(out))
		require.Equal(t, 2, c.Turns, "it is fed once more")
	})
}

// TestFlightTakesThirtyTwo: more commands than that ask in further flights, in order.
func TestFlightTakesThirtyTwo(t *testing.T) {
	s := newServer(t)
	c := open(t, s.Engine)
	s.Double.Hold()
	var in []byte
	want := ""
	for i := range 100 {
		in = fmt.Appendf(in, "SET k v\r\nCL.THROTTLE k 99 1 60\r\n")
		want += fmt.Sprintf("-ERR 'set' is not served with --store; ask the store itself\r\n*5\r\n:0\r\n:100\r\n:%d\r\n:-1\r\n:%d\r\n", 99-i, 60*(i+1))
	}
	rest, out, next := c.Turn(in, nil)
	require.Equal(t, transport.Park, next)
	require.Equal(t, 32, s.Double.Pending())
	s.Double.Release()
	more, _ := c.Feed(rest)
	require.Equal(t, want, string(append(out, more...)))
}

// TestFlightEndsBeforeAFence: all commands before it are finished when a command runs that changes
// the client, and a fence that asks is the only one in its flight.
func TestFlightEndsBeforeAFence(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for fence, asks := range map[string]int{
			"CLIENT SETNAME n": 0, "SELECT 0": 0, "HELLO 3": 0, "MULTI": 0, "QUIT": 0, "RESET": 0, "DBSIZE": 1, "SCAN 0": 1, "FLUSHDB": 1,
			"SW.ALLOW k 1 60 BLOCK 0": 0, "TB.ACQUIRE b 1 1 60 BLOCK 0": 1, "INFO": 0, "AUTH x": 0,
		} {
			s := newServer(t)
			c := open(t, s.Engine)
			s.Double.Hold()
			rest, _, next := c.Turn(lines(throttle, throttle, fence, throttle), nil)
			require.Equal(t, transport.Park, next, fence)
			require.Equal(t, 2, s.Double.Pending(), fence)
			require.Equal(t, string(lines(fence, throttle)), string(rest), fence)
			s.Double.Release()
			synctest.Wait()
			require.True(t, c.Woken())
			s.Double.Hold()
			rest, _, _ = c.Turn(rest, nil)
			if asks > 0 {
				require.Equal(t, asks, s.Double.Pending(), fence)
				require.Equal(t, string(lines(throttle)), string(rest), fence)
			}
			s.Double.Release()
			c.Closed()
		}
	})
}

// TestFlightKeepsOrderThroughFences: with all kinds of commands in between, the replies are those
// of a server with a keyspace.
func TestFlightKeepsOrderThroughFences(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 30 {
		same(t, pipeline(rng, "", 100))
	}
}

// pipeline returns n random commands on keys that begin with prefix.
func pipeline(rng *rand.Rand, prefix string, n int) (in []byte) {
	local := []string{
		"PING", "PING x", "ECHO hello", "NONE a", "GET", "CLIENT GETNAME", "CLIENT SETNAME me", "SELECT 0", "HELLO 2", "HELLO 3", "SELECT 1",
		"CLIENT REPLY OFF", "CLIENT REPLY ON", "CLIENT REPLY SKIP", "RESET", "TIME", "COMMAND COUNT x", "AUTH x", "CLUSTER INFO", "EXEC", "DISCARD",
		"CONFIG GET maxclients x*", "HELLO 4",
	}
	asks := []string{
		"CL.THROTTLE %s 3 1 60", "CL.THROTTLE %s 3 1 60 2", "CL.THROTTLE %s 3 1 60 0", "CL.THROTTLE %s x 1 60", "RL.THROTTLE %s 9 5 10",
		"SW.ALLOW %s:w 5 60", "SW.ALLOW %s:w 5 60 2 MS", "SW.ALLOW %s 5 60", "SW.ALLOW %s:l 3 10 LOG", "TB.ACQUIRE %s:t 5 1 10 2", "TB.ACQUIRE %s:t 5 1 10 WAIT 100",
		"CC.ACQUIRE %s:c 2 60 a", "CC.ACQUIRE %s:c 2 60 BLOCK", "CC.RELEASE %s:c a", "CC.RENEW %s:c a 70", "RL.INFO %s", "RL.INFO %s:w", "RL.INFO %s CL 3 1 60",
		"RL.MULTI 2 %[1]s %[1]s:w CL 3 1 60 SW 5 60 WITHDETAILS", "RL.MULTI 1 %[1]s CL 3 1 60 MS", "RL.MULTI 2 %[1]s %[1]s:c CL 9 9 60 CC 2 60 MEMBER a", "RL.MULTI 1 %s:c CC 2 60",
		"GET %s", "GET %s:w", "DEL %s", "DEL %[1]s %[1]s:w %[1]s:t",
		"UNLINK %s:l", "EXISTS %[1]s %[1]s:w %[1]s", "TOUCH %s", "TTL %s", "PTTL %s:w", "EXPIRETIME %s", "PEXPIRETIME %s", "EXPIRE %s 100", "EXPIRE %s 50 NX",
		"PEXPIRE %s 5000 XX", "EXPIREAT %s 1700000500", "PEXPIREAT %s 1 LT", "EXPIRE %s x", "PERSIST %s", "TYPE %s", "TYPE %s:w", "SW.ALLOW %s:b 9 60 BLOCK 1", "TTL",
	}
	add := func() {
		if rng.IntN(3) == 0 {
			in = append(append(in, local[rng.IntN(len(local))]...), "\r\n"...)
			return
		}
		key := fmt.Sprintf("%sk%d", prefix, rng.IntN(3))
		words := strings.Fields(fmt.Sprintf(asks[rng.IntN(len(asks))], key))
		if len(words) > 1 && strings.HasPrefix(words[1], "%!") {
			words = words[:1]
		}
		in = inproc.Encode(in, clean(words)...)
	}
	for range n {
		if rng.IntN(10) > 0 {
			add()
			continue
		}
		in = append(in, "MULTI\r\n"...)
		for range rng.IntN(5) {
			add()
		}
		in = append(in, "EXEC\r\n"...)
	}
	return in
}

// clean removes Sprintf's complaint about a format without a verb.
func clean(words []string) []string {
	for i, w := range words {
		if strings.HasPrefix(w, "%!") || strings.HasPrefix(w, "TTL%!") {
			words[i] = strings.TrimSuffix(strings.Split(w, "%!")[0], " ")
			return words[:i+1]
		}
	}
	return words
}

// TestSixtyFourSessionsOfMixedFlights: 64 sessions at once each get the replies of a server with a
// keyspace, however their commands are cut into pieces.
func TestSixtyFourSessionsOfMixedFlights(t *testing.T) {
	s, embedded := newServer(t), newEmbedded(t)
	rounds := effort.Steps(2, 6)
	var all sync.WaitGroup
	for i := range 64 {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		c, reference := open(t, s.Engine), open(t, embedded)
		all.Go(func() {
			for range rounds {
				in := pipeline(rng, fmt.Sprintf("s%d:", i), 60)
				want, wantOver := reference.Feed(bytes.Clone(in))
				got, over := feedInPieces(rng, c, in)
				if !bytes.Equal(want, got) || over != wantOver {
					t.Errorf("session %d: %s", i, difference(want, got))
					return
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, s.Double.Pending())
}

// feedInPieces passes in to the session in pieces, as a transport does: each piece after the rest
// of the last one.
func feedInPieces(rng *rand.Rand, c *remotedouble.Session, in []byte) (out []byte, over bool) {
	var have []byte
	for len(in) > 0 && !over {
		n := min(len(in), 1+rng.IntN(400))
		have, in = append(have, in[:n]...), in[n:]
		have, out, over = c.FeedMore(have, out)
	}
	return out, over
}

// TestFlightOfAPipelineCutAnywhere: the replies do not depend on where a pipeline is cut in two.
func TestFlightOfAPipelineCutAnywhere(t *testing.T) {
	in := lines("CL.THROTTLE k 3 1 60", "PING", "MULTI", "SW.ALLOW w 5 60", "GET k", "EXEC", "CLIENT REPLY SKIP", "EXISTS k", "CLIENT REPLY OFF",
		"DEL k", "CLIENT REPLY ON", "EXISTS k w", "DBSIZE", "*1\r\n$4\r\nPING", "QUIT", "PING")
	s := newServer(t)
	want, over := open(t, s.Engine).Feed(bytes.Clone(in))
	require.True(t, over)
	for at := range in {
		s := newServer(t)
		c := open(t, s.Engine)
		have, got, over := c.FeedMore(bytes.Clone(in[:at]), nil)
		if !over {
			_, got, over = c.FeedMore(append(have, in[at:]...), got)
		}
		require.True(t, over)
		require.Equal(t, string(want), string(got), "cut at %d", at)
	}
}

// TestFlightHeedsClientReply: suppressed replies are missing, and their commands ask in flights of
// their own.
func TestFlightHeedsClientReply(t *testing.T) {
	for _, in := range [][]string{
		{"CLIENT REPLY SKIP", throttle, throttle, "PING"},
		{"CLIENT REPLY OFF", throttle, "PING", throttle, "CLIENT REPLY ON", throttle},
		{"CLIENT REPLY SKIP", "MULTI", throttle, "EXEC", "PING"},
		{"MULTI", throttle, "CLIENT REPLY SKIP", "EXEC", throttle, "PING"},
		{"MULTI", throttle, "CLIENT REPLY OFF", throttle, "EXEC", throttle, "PING", "CLIENT REPLY ON"},
		{"CLIENT REPLY OFF", "MULTI", throttle, "CLIENT REPLY ON", throttle, "EXEC", throttle},
		{"CLIENT REPLY SKIP", "TB.ACQUIRE b 1 1 60 BLOCK 0", "PING"},
		{"CLIENT REPLY SKIP", "SCAN 0", "PING", "SCAN 0"},
		{"CLIENT REPLY SKIP", "CL.THROTTLE k 1 1 x", "PING"},
	} {
		same(t, lines(in...))
	}
}

// TestFlightBeforeTheEndIsAnswered: asks before QUIT, a protocol error or a command beyond the
// limits are answered, and then the connection closes.
func TestFlightBeforeTheEndIsAnswered(t *testing.T) {
	const granted = "*5\r\n:0\r\n:100\r\n:99\r\n:-1\r\n:60\r\n"
	for end, reply := range map[string]string{
		"QUIT\r\n":             "+OK\r\n",
		"*1\r\n!\r\n":          "-ERR Protocol error: expected '$', got '!'\r\n",
		"POST / HTTP\r\n":      "",
		"QUIT\r\nPING\r\n":     "+OK\r\n",
		"SHUTDOWN\r\nPING\r\n": "",
	} {
		s := newServer(t)
		s.Double.Hold()
		c := open(t, s.Engine)
		rest, out, next := c.Turn(append(lines(throttle), end...), nil)
		require.Equal(t, transport.Park, next, end)
		s.Double.Release()
		more, over := c.Feed(rest)
		require.True(t, over, end)
		require.Equal(t, granted+reply, string(append(out, more...)), end)
	}
}

// TestClientThatGoesLosesItsAnswersOnly: the asks of a disconnected client are decided all the
// same, and no other client is disturbed.
func TestClientThatGoesLosesItsAnswersOnly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, err := remotedouble.NewServer(epoch, 1, nil)
		require.NoError(t, err)
		s.Double.Hold()
		goroutines := runtime.NumGoroutine()
		for range 50 {
			c := open(t, s.Engine)
			_, _, next := c.Turn(lines(throttle, "MULTI"), nil)
			require.Equal(t, transport.Park, next)
			c.Closed()
		}
		require.LessOrEqual(t, runtime.NumGoroutine(), goroutines, "a flight under way takes no goroutine")
		killed := open(t, s.Engine)
		_, _, next := killed.Turn(lines(throttle), nil)
		require.Equal(t, transport.Park, next)
		for _, cl := range s.Clients() {
			cl.Kill()
		}
		require.True(t, killed.Aborted())
		out, over := killed.Feed(nil)
		require.True(t, over)
		require.Empty(t, out)
		killed.Closed()
		s.Double.Release()
		out, _ = open(t, s.Engine).Feed(lines(throttle))
		require.Equal(t, "*5\r\n:0\r\n:100\r\n:48\r\n:-1\r\n:3120\r\n", string(out))
		s.Close() // the bubble requires all goroutines to end
	})
}

// TestPauseHoldsBackWhatComesBehindAFlight: a command that a pause delays runs from its first byte
// after the pause, and asks before it are answered meanwhile.
func TestPauseHoldsBackWhatComesBehindAFlight(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t)
		other, c := open(t, s.Engine), open(t, s.Engine)
		_, _ = other.Feed(lines("CLIENT PAUSE 1000 WRITE"))
		rest, out := asking(t, s, c, lines("GET k", "PING", throttle, "PING"))
		require.Empty(t, out)
		require.Equal(t, string(lines(throttle, "PING")), string(rest))
		rest, out, next := c.Turn(rest, nil)
		require.Equal(t, "$-1\r\n+PONG\r\n", string(out))
		require.Equal(t, transport.Wait, next)
		s.Clock.Advance(time.Second)
		out, _ = c.Feed(rest)
		require.Equal(t, "*5\r\n:0\r\n:100\r\n:99\r\n:-1\r\n:60\r\n+PONG\r\n", string(out))
	})
}

// TestExecAsksForAllTogether: a transaction is one submission, and its reply one array.
func TestExecAsksForAllTogether(t *testing.T) {
	s := newServer(t)
	recorder := &recorder{Remote: s.Options.Remote}
	s.Options.Remote = recorder
	c := open(t, s.Engine)
	out, _ := c.Feed(lines("EXISTS a", "MULTI", throttle, "PING", "CL.THROTTLE j 0 1 60", "SELECT 0", "SET a b", "EXEC", "EXISTS a b"))
	require.Equal(t, ":0\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n-ERR 'set' is not served with --store; ask the store itself\r\n"+
		"-EXECABORT Transaction discarded because of previous errors.\r\n:0\r\n", string(out))
	require.Equal(t, "1 2", recorder.take())
	out, _ = c.Feed(lines("EXISTS a", "MULTI", throttle, "PING", "CL.THROTTLE j 0 1 60", "SELECT 0", "EXEC", "EXISTS a b"))
	require.Equal(t, ":0\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n*5\r\n:0\r\n:100\r\n:99\r\n:-1\r\n:60\r\n+PONG\r\n"+
		"*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n+OK\r\n:0\r\n", string(out))
	require.Equal(t, "1 2together 2", recorder.take())
	out, _ = c.Feed(lines("WATCH k", "UNWATCH"))
	require.Equal(t, "-ERR 'watch' is not served with --store; ask the store itself\r\n-ERR 'unwatch' is not served with --store; ask the store itself\r\n",
		string(out))
}

// recorder counts the asks of each submission.
type recorder struct {
	env.Remote
	mu    sync.Mutex
	calls []string
}

func (r *recorder) Submit(asks []*decide.Ask, together bool, done func()) {
	r.mu.Lock()
	note := fmt.Sprint(len(asks))
	if together {
		note += "together"
	}
	r.calls = append(r.calls, note)
	r.mu.Unlock()
	r.Remote.Submit(asks, together, done)
}

func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.calls = nil }()
	return strings.Join(r.calls, " ")
}

// TestLongExecAsksInTheBackground: a transaction that is too much work for an event loop gets the
// same replies.
func TestLongExecAsksInTheBackground(t *testing.T) {
	const n = 3000
	var in []byte
	in = append(in, "MULTI\r\n"...)
	for i := range n {
		in = fmt.Appendf(in, "CL.THROTTLE k%d 9 1 60\r\nPING\r\n", i%100)
	}
	same(t, append(in, "EXEC\r\nGET k1\r\nDBSIZE\r\n"...))
	same(t, lines("CL.THROTTLE a 9 1 60", "MULTI", "DBSIZE", "FLUSHDB", "DBSIZE", "SCAN 0", "EXEC", "DBSIZE"))
}

// TestDeletingManyKeys: a command with thousands of keys asks about all of them, and waits in the
// background.
func TestDeletingManyKeys(t *testing.T) {
	var in []byte
	words := []string{"DEL"}
	for i := range 6000 {
		if i < 500 {
			in = fmt.Appendf(in, "CL.THROTTLE k%d 9 1 60\r\n", i)
		}
		words = append(words, fmt.Sprintf("k%d", i))
	}
	in = inproc.Encode(in, append([]string{"EXISTS"}, words[1:400]...)...)
	same(t, append(inproc.Encode(in, words...), "DBSIZE\r\nPING\r\n"...))
}

// TestAnswerThatIsReadyAtOnceIsWrittenAtOnce: a Remote that has decided when Submit returns costs
// no turn.
func TestAnswerThatIsReadyAtOnceIsWrittenAtOnce(t *testing.T) {
	s := newServer(t)
	s.Options.Remote = atOnce{s.Options.Remote}
	c := open(t, s.Engine)
	rest, out, next := c.Turn(lines("PING", "EXISTS k", "CLIENT GETNAME", "EXISTS k", "PING"), nil)
	require.Equal(t, "+PONG\r\n:0\r\n", string(out))
	require.Equal(t, transport.Again, next, "it ended before a fence")
	rest, out, next = c.Turn(rest, nil)
	require.Equal(t, "$-1\r\n:0\r\n+PONG\r\n", string(out))
	require.Equal(t, transport.Read, next)
	require.Empty(t, rest)
	_, out, next = c.Turn(lines("EXISTS k", "QUIT"), nil)
	require.Equal(t, ":0\r\n", string(out))
	require.Equal(t, transport.Again, next)
	_, _, next = c.Turn(lines("QUIT"), nil)
	require.Equal(t, transport.Close, next)
	require.False(t, c.Woken())
}

// atOnce is a Remote that finds no key and decides before Submit returns.
type atOnce struct{ env.Remote }

func (atOnce) Submit(asks []*decide.Ask, _ bool, done func()) { done() }

// TestErrorsOfARemote: each ask has its own error, and the error of an undecided ask gives the
// reason.
func TestErrorsOfARemote(t *testing.T) {
	s := newServer(t)
	s.Double.Fail(func(a *decide.Ask) error {
		switch string(a.Key) {
		case "away":
			return decide.Unavailable("timeout")
		case "wrong":
			return limit.ErrWrongType
		case "odd":
			return errors.New("something secret")
		}
		return nil
	})
	c := open(t, s.Engine)
	out, _ := c.Feed(lines("CL.THROTTLE away 1 1 60", "EXISTS k", "SW.ALLOW wrong 1 60", "TTL odd", "DEL k away j", "GET wrong", "INFO commandstats errorstats"))
	replies := strings.SplitAfter(string(out), "\r\n")
	require.Equal(t, []string{
		"-UNAVAILABLE timeout\r\n", ":0\r\n", "-" + string(resp.ErrWrongType) + "\r\n", "-ERR internal error\r\n", "-UNAVAILABLE timeout\r\n",
		"-" + string(resp.ErrWrongType) + "\r\n",
	}, replies[:6])
	info := string(out)
	for _, want := range []string{
		"errorstat_UNAVAILABLE:count=2", "errorstat_WRONGTYPE:count=2", "errorstat_ERR:count=1",
	} {
		require.Contains(t, info, want)
	}
	require.Regexp(t, `cmdstat_cl.throttle:calls=1,usec=\d+,usec_per_call=[\d.]+,rejected_calls=0,failed_calls=1`, info)
	require.Regexp(t, `cmdstat_exists:calls=1,usec=\d+,usec_per_call=[\d.]+,rejected_calls=0,failed_calls=0`, info)
}

// TestFlightKeepsTheBooks: calls, refusals and errors are counted as by a server with a keyspace,
// and RL.TOP has the keys.
func TestFlightKeepsTheBooks(t *testing.T) {
	in := lines("CL.THROTTLE k 0 1 60", "CL.THROTTLE k 0 1 60", "CL.THROTTLE k 0 1 60", "CL.THROTTLE j 0 1 x", "SW.ALLOW w 1 60", "SW.ALLOW w 1 60",
		"SW.ALLOW k 1 60", "GET", "MULTI", "CL.THROTTLE k 0 1 60", "SW.ALLOW k 1 60", "EXEC", "RL.TOP DENIED", "INFO errorstats")
	same(t, in)
	in = append(in, "INFO ratelimit\r\n"...)
	got, _ := open(t, newServer(t).Engine).Feed(in)
	want, _ := open(t, newEmbedded(t)).Feed(in)
	limiters := regexp.MustCompile(`(cl|sw|tb|cc)\.\w+:allowed=.*`)
	require.Len(t, limiters.FindAll(want, -1), 6)
	require.Equal(t, limiters.FindAll(want, -1), limiters.FindAll(got, -1))
}

// TestPanicInAnAnswerEndsItsClientOnly: replies before the panic are sent.
func TestPanicInAnAnswerEndsItsClientOnly(t *testing.T) {
	s := newServer(t)
	cmd := s.Engine.Commands.Lookup([]byte("TYPE"))
	answer := cmd.Answer
	cmd.Answer = func(c *command.Call, a *decide.Ask) {
		c.W.Array(2)
		if string(a.Key) == "bad" {
			panic("no")
		}
		c.W.Cut(len(c.W.Buf) - 4)
		answer(c, a)
	}
	c, other := open(t, s.Engine), open(t, s.Engine)
	out, over := c.Feed(lines("EXISTS k", "PING", "TYPE bad", "EXISTS k", "PING"))
	require.True(t, over)
	require.Equal(t, ":0\r\n+PONG\r\n-ERR internal error\r\n", string(out))
	require.Equal(t, int64(1), s.Statistics().Panics)
	out, over = other.Feed(lines("EXISTS k", "TYPE k"))
	require.False(t, over)
	require.Equal(t, ":0\r\n+none\r\n", string(out))
	c, err := remotedouble.Open(s.Engine)
	require.NoError(t, err)
	out, over = c.Feed(lines("MULTI", "EXISTS k", "TYPE bad", "EXEC"))
	require.True(t, over)
	require.True(t, strings.HasSuffix(string(out), "-ERR internal error\r\n"))
}

// TestPanicInAParseEndsItsClientOnly: asks before the panic are answered.
func TestPanicInAParseEndsItsClientOnly(t *testing.T) {
	s := newServer(t)
	s.Engine.Commands.Lookup([]byte("TYPE")).Parse = func(c *command.Call) resp.Error {
		c.NewAsk(decide.Admin, c.Args[1])
		panic("no")
	}
	c := open(t, s.Engine)
	out, over := c.Feed(lines("EXISTS k", "PING", "TYPE bad", "EXISTS k"))
	require.True(t, over)
	require.Equal(t, ":0\r\n+PONG\r\n-ERR internal error\r\n", string(out))
	out, _ = open(t, s.Engine).Feed(lines("EXISTS k"))
	require.Equal(t, ":0\r\n", string(out))
	require.Zero(t, s.Double.Pending())
}

// FuzzFlightSplit: whether a pipeline arrives whole or in two pieces, the replies are the same and
// in order.
func FuzzFlightSplit(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 4 {
		f.Add(pipeline(rng, "", 12), uint16(rng.IntN(300)))
	}
	f.Add(lines(throttle, "MULTI", throttle, "EXEC", "CLIENT REPLY SKIP", throttle, "QUIT"), uint16(20))
	f.Add(lines(throttle, "*1\r\n!", "PING"), uint16(25))
	f.Fuzz(func(t *testing.T, in []byte, at uint16) {
		for _, word := range []string{"BLOCK", "PAUSE", "INFO", "LIST"} {
			if bytes.Contains(bytes.ToUpper(in), []byte(word)) {
				t.Skip("it may wait for a clock that stands still, or tell how long something took")
			}
		}
		cut := int(at) % (len(in) + 1)
		whole, halves := open(t, newServer(t).Engine), open(t, newServer(t).Engine)
		_, want, wantOver := whole.FeedMore(bytes.Clone(in), nil)
		rest, got, over := halves.FeedMore(bytes.Clone(in[:cut]), nil)
		if !over {
			_, got, over = halves.FeedMore(append(rest, in[cut:]...), got)
		}
		require.Equal(t, string(want), string(got))
		require.Equal(t, wantOver, over)
	})
}

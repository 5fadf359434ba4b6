package server_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/simnet"
)

// poll is the time within which a server notices room that another server has made.
const poll = 100 * time.Millisecond

// queue is a server on whose clients the test waits.
type queue struct {
	t     *testing.T
	w     *inproc.World
	clock *clocktest.Clock
	nodes []*inproc.Node
}

// queueOver returns n servers with one store.
func queueOver(t *testing.T, w *inproc.World, n int) *queue {
	t.Helper()
	e := newSharedStore(t)
	q := &queue{t, w, e.clock, nil}
	for range n {
		q.nodes = append(q.nodes, startOver(w, e))
	}
	return q
}

// advance moves the clock, and returns when everything that was due is done.
func (q *queue) advance(d time.Duration) {
	q.clock.Advance(d)
	q.w.Settle()
}

// set changes the policies, and returns when all servers know it.
func (q *queue) set(words ...string) {
	q.t.Helper()
	c := q.nodes[0].Dial()
	for _, w := range words {
		require.NotContains(q.t, c.Say(w), "-", w)
	}
	require.NoError(q.t, c.Close())
	follows()
}

// blocked returns the number of clients that wait on the servers.
func (q *queue) blocked() (n int64) {
	q.w.Settle()
	for _, n2 := range q.nodes {
		_, blocked := n2.Engine().CountClients()
		n += blocked
	}
	return n
}

// waits makes a client of node i wait.
func (q *queue) waits(i int, words string) *inproc.Client {
	q.t.Helper()
	c := q.nodes[i].Dial()
	before := q.blocked()
	c.Command(strings.Fields(words)...)
	require.Equal(q.t, before+1, q.blocked(), words)
	return c
}

// idOf returns the ID of the client of node i that waits, of which there is one.
func (q *queue) idOf(i int) string {
	q.t.Helper()
	ids := regexp.MustCompile(`(?m)id=(\d+) .* flags=b`).FindAllStringSubmatch(q.nodes[i].Dial().Say("CLIENT LIST"), -1)
	require.Len(q.t, ids, 1)
	return ids[0][1]
}

// TestUseWaitsOverAStore: whatever makes room in any clause lets the first client of the key pass, at once on the server
// that makes it, and within a tenth of a second on another one.
func TestUseWaitsOverAStore(t *testing.T) {
	for name, room := range map[string]string{
		"a refund":              "RL.USE api k -1 MEMBER none",
		"a refund of one limit": "RL.USE api k -1 0 0",
		"a reset":               "RL.RESET api k",
		"DEL":                   "DEL api:k",
		"SW.ALLOW":              "SW.ALLOW api:k 1 60 -1 FIXED ANCHOR FIRST",
	} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				q := queueOver(t, w, 2)
				q.set("RL.POLICY SET api LIMITS SW 1 60 FIXED ANCHOR FIRST CC 9 600 TB 9 1 60")
				one, other := q.nodes[0].Dial(), q.nodes[1].Dial()
				require.Equal(t, inproc.Five(0, 1, 0, -1, 600), one.Say("RL.USE api k MEMBER a"))
				here := q.waits(0, "RL.USE api k BLOCK 0 MEMBER b WITHDETAILS")
				next := q.waits(0, "RL.USE api k BLOCK 0 MEMBER c")
				require.NotContains(t, one.Say(room), "-ERR")
				require.Contains(t, here.Reply(), "*2\r\n*5\r\n:0\r\n:1\r\n:0\r\n")
				there := q.waits(1, "RL.USE api k BLOCK 0 MEMBER d")
				inproc.Silent(next, there)
				require.NoError(t, next.Close())
				require.EqualValues(t, 1, q.blocked())
				require.NotContains(t, one.Say(room), "-ERR")
				w.Settle()
				there.Silent()
				q.advance(poll)
				require.Contains(t, there.Reply(), "*5\r\n:0\r\n:1\r\n:0\r\n")
				require.Contains(t, other.Say("RL.USE api k PEEK MEMBER e"), "*5\r\n:1\r\n:1\r\n:0\r\n")
				require.Zero(t, q.blocked())
			})
		})
	}
}

// TestUseWaitsOverAStoreInTurn: the calls on a server pass in the order of their arrival, as time makes room, and keep the
// limits with which they have come.
func TestUseWaitsOverAStoreInTurn(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		q := queueOver(t, w, 2)
		q.set("RL.POLICY SET api CLASS low KEEP 50% LIMITS SW 2 60 FIXED ANCHOR FIRST")
		require.Equal(t, inproc.Five(0, 2, 0, -1, 60), q.nodes[1].Dial().Say("RL.USE api k 2"))
		low := q.waits(0, "RL.USE api k BLOCK 0 CLASS low")
		first, second, third := q.waits(0, "RL.USE api k BLOCK 0"), q.waits(0, "RL.USE api k BLOCK 0"), q.waits(0, "RL.USE api k BLOCK 0")
		q.set("RL.POLICY DEL api")
		require.Contains(t, q.nodes[0].Dial().Say("RL.USE api k BLOCK 0"), "-NOPOLICY")
		q.advance(time.Minute)
		first.Expect(inproc.Five(0, 2, 1, -1, 60))
		second.Expect(inproc.Five(0, 2, 0, -1, 60))
		inproc.Silent(low, third)
		q.advance(time.Minute)
		third.Expect(inproc.Five(0, 2, 1, -1, 60))
		low.Silent() // its share is for others
		q.advance(time.Minute)
		low.Expect(inproc.Five(0, 2, 1, -1, 60))
		require.Zero(t, q.blocked())
	})
}

// TestUseTakesTokensInAdvanceOverAStore: a call that waits for a bucket has its tokens, and gives them back if its client
// leaves.
func TestUseTakesTokensInAdvanceOverAStore(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		q := queueOver(t, w, 2)
		q.set("RL.POLICY SET api LIMITS TB 1 1 10")
		one, other := q.nodes[0].Dial(), q.nodes[1].Dial()
		require.Equal(t, inproc.Five(0, 1, 0, -1, 10), one.Say("RL.USE api k BLOCK 0"))
		first := q.waits(0, "RL.USE api k BLOCK 0 WITHDETAILS MS")
		second, third := q.waits(1, "RL.USE api k BLOCK 0"), q.waits(0, "RL.USE api k BLOCK 0")
		id := q.nodes[1].Dial()
		require.Equal(t, inproc.Five(1, 1, 0, 40, 40), id.Say("RL.USE api k"))
		require.Equal(t, inproc.Five(1, 1, 0, 5, 40), one.Say("RL.USE api k BLOCK 35"), "its tokens come too late")
		require.NoError(t, third.Close())
		w.Settle()
		require.Equal(t, inproc.Five(1, 1, 0, 30, 30), other.Say("RL.USE api k"))
		q.advance(10 * time.Second)
		d := inproc.Five(0, 1, 0, -1, 10_000)
		d = strings.Replace(d, ":10000", ":20000", 1)
		first.Expect("*2\r\n" + d + "*1\r\n" + d)
		second.Silent()
		q.advance(10 * time.Second)
		second.Expect(inproc.Five(0, 1, 0, -1, 10))
		require.Zero(t, q.blocked())
	})
}

// TestUseStopsWaitingOverAStore: a wait ends at its timeout, by CLIENT UNBLOCK, when the user loses the permission, and when
// its client leaves.
func TestUseStopsWaitingOverAStore(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		q := queueOver(t, w, 1)
		q.set("RL.POLICY SET api LIMITS SW 1 60 FIXED ANCHOR FIRST BAN 5 60 600", "RL.POLICY SET jobs LIMITS CC 1 600")
		admin := q.nodes[0].Dial()
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), admin.Say("RL.USE api k"))
		late := q.waits(0, "RL.USE api k BLOCK 0.05")
		q.advance(50 * time.Millisecond)
		late.Expect(inproc.Five(1, 1, 0, 60, 60))
		for _, how := range []string{"", "ERROR"} {
			c := q.nodes[0].Dial()
			id := c.ID()
			c.Command(strings.Fields("RL.USE api k BLOCK 0")...)
			require.EqualValues(t, 1, q.blocked())
			require.Equal(t, ":1\r\n", admin.Say("CLIENT UNBLOCK "+id+" "+how))
			if how == "" {
				c.Expect(inproc.Five(1, 1, 0, 60, 60))
			} else {
				c.Expect("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")
			}
		}
		gone := q.waits(0, "RL.USE api k BLOCK 0")
		require.NoError(t, gone.Conn.(*simnet.Conn).CloseWrite())
		require.Zero(t, q.blocked())

		app := q.nodes[0].Dial().As(admin, "+rl.use", "~*")
		app.Command(strings.Fields("RL.USE api k BLOCK 0")...)
		require.EqualValues(t, 1, q.blocked())
		require.Equal(t, inproc.OK, admin.Say("ACL SETUSER app resetkeys ~other:*"))
		require.Equal(t, ":2\r\n", admin.Say("RL.RESET api k"), "the window and the denials")
		require.Contains(t, app.Reply(), "-NOPERM")
		require.Zero(t, q.blocked())
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), admin.Say("RL.USE api k"), "the call has taken nothing")

		require.Equal(t, inproc.Five(1, 1, 1, -1, 0), admin.Say("RL.USE api new 2 BLOCK 0"), "it can never pass")
		require.Contains(t, admin.Say("RL.USE jobs k BLOCK 0"), "-ERR the policy has a CC clause, which needs MEMBER")
		require.Equal(t, inproc.Five(0, 1, 0, -1, 600), admin.Say("RL.USE jobs k MEMBER a BLOCK 0"))
		require.Equal(t, inproc.Five(0, 1, 0, -1, 600), admin.Say("RL.USE jobs k MEMBER a BLOCK 0"), "it renews its lease")
	})
}

// TestUseOverAStoreDoesNotWait: calls that are answered at once, whatever their timeout is.
func TestUseOverAStoreDoesNotWait(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		q := queueOver(t, w, 1)
		q.set("RL.POLICY SET api LIMITS SW 1 60 FIXED ANCHOR FIRST BAN 1 60 600", "RL.POLICY SET quiet SHADOW LIMITS TB 1 1 60",
			"RL.POLICY SET count COUNT LIMITS SW 1 60", "RL.BLOCK api blocked EX 100", "RL.EXEMPT api exempt")
		c := q.nodes[0].Dial()
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), c.Say("RL.USE api banned"))
		require.Equal(t, inproc.Five(1, 1, 0, 600, 600), c.Say("RL.USE api banned"))
		for words, want := range map[string]string{
			"RL.USE api blocked BLOCK 0":             inproc.Five(1, 1, 0, 100, 100),
			"RL.USE api exempt 5 BLOCK 0":            inproc.Five(0, 1, 1, -1, 0),
			"RL.USE quiet k 5 BLOCK 0":               inproc.Five(0, 1, 1, -1, 0),
			"RL.USE api banned BLOCK 0":              inproc.Five(1, 1, 0, 600, 600),
			"RL.USE api banned -1 BLOCK 0":           inproc.Five(0, 1, 1, -1, 0),
			"RL.USE api k 0 BLOCK 0":                 inproc.Five(0, 1, 1, -1, 0),
			"RL.USE count k BLOCK 0":                 "-ERR PARTIAL, WAIT, BLOCK and RESERVE are not for a policy with COUNT\r\n",
			"RL.USE api k PEEK BLOCK 0":              "-ERR syntax error near 'BLOCK'\r\n",
			"RL.USE api k BLOCK 0 ID x":              "-ERR syntax error near 'ID'",
			"RL.USE api k 0 AND quiet other BLOCK 0": inproc.Five(0, 1, 1, -1, 0),
			"RL.USE api k 1 1 BLOCK 0":               "-ERR 2 quantities for 1 clauses: the limits for this key need one quantity, or one for each clause\r\n",
		} {
			require.Contains(t, c.Say(words), want, words)
		}
		require.Zero(t, q.blocked())
		require.Contains(t, c.Say("RL.POLICY GET api"), inproc.Bulk("banned")+":1\r\n")
	})
}

// asEmbedded are clients of a server with a keyspace, and of one with a store, at the same index. Both are asked the same.
type asEmbedded struct {
	servers [2]*queue
	clients [2][]*inproc.Client
	waiting []string // the call of each client that waits, or ""
}

// answers returns what the clients of server i have got, in the order of the clients.
func (e *asEmbedded) answers(i int) (all []string) {
	for n, c := range e.clients[i] {
		answer := ""
		if e.waiting[n] != "" && (c.R.Buffered() > 0 || !c.Conn.(*simnet.Conn).Idle()) {
			answer = fmt.Sprintf("%d %s: %q", n, e.waiting[n], c.Reply())
		}
		all = append(all, answer)
	}
	return all
}

// played counts what playAsEmbedded has played: calls, those that have waited, and those of them that have passed, and the
// notices of their keys.
type played struct {
	seed                  int // of the present world
	calls, waited, passed int
	told                  int64
}

// passes matches what answers returns for a call that passes.
var passes = regexp.MustCompile(`: "(\*2\\r\\n)?\*5\\r\\n:0`)

// playAsEmbedded draws calls of 6 clients by call, and plays them on a server with a keyspace and on one with a store, after
// the commands setup. The replies and their instants are the same, and so are
// the replies to looks at the end and the number of notices.
func (p *played) playAsEmbedded(t *testing.T, rnd *rand.Rand, setup []string, call func(rnd *rand.Rand, c int) string, looks ...string) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		embedded, clock := w.StartStepped()
		e := asEmbedded{servers: [2]*queue{{t, w, clock, []*inproc.Node{embedded}}, queueOver(t, w, 1)}}
		for i, q := range e.servers {
			q.set(setup...)
			for range 6 {
				e.clients[i] = append(e.clients[i], q.nodes[0].Dial())
			}
		}
		e.waiting = make([]string, 6)
		for range 150 {
			said := ""
			c := rnd.IntN(6)
			switch free := e.waiting[c] == ""; {
			case free:
				said = call(rnd, c)
				for _, clients := range e.clients {
					clients[c].Command(strings.Fields(said)...)
				}
				e.waiting[c] = said
				p.calls++
			case rnd.IntN(2) == 0:
				d := []time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second}[rnd.IntN(4)]
				said = "+" + d.String()
				for _, q := range e.servers {
					require.NoError(t, q.clock.Manual.Advance(d, w.Settle))
				}
			}
			w.Settle()
			want, got := e.answers(0), e.answers(1)
			require.Equal(t, want, got, "seed %d, %s: %s", p.seed, setup, said)
			for n, answer := range want {
				switch {
				case answer != "":
					if e.waiting[n] != said && passes.MatchString(answer) {
						p.passed++
					}
					e.waiting[n] = ""
				case n == c && e.waiting[n] == said && said != "":
					p.waited++
				}
			}
		}
		require.Equal(t, e.servers[0].blocked(), e.servers[1].blocked())
		for _, words := range looks {
			says := func(i int) string { return e.servers[i].nodes[0].Dial().Say(words) }
			require.Equal(t, says(0), says(1), "seed %d, %s: %s", p.seed, setup, words)
		}
		told := func(i int) int64 { return e.servers[i].nodes[0].Dial().InfoNumber("policy-notices-delivered") }
		require.Equal(t, told(0), told(1), "seed %d, %s", p.seed, setup)
		p.told += told(0)
	})
}

// enough requires that a part of the calls have waited, and a part of these have passed.
func (p *played) enough(t *testing.T) {
	t.Helper()
	t.Logf("%d calls, %d have waited, and %d of them have passed; %d notices", p.calls, p.waited, p.passed, p.told)
	require.Greater(t, p.waited, p.calls/10)
	require.Greater(t, p.passed, p.waited/10)
}

// TestUseWaitsOverAStoreAsEmbedded draws calls that wait, and others, and plays them on a server with a keyspace and on one
// with a store: the replies, their instants and what is counted are the same.
func TestUseWaitsOverAStoreAsEmbedded(t *testing.T) {
	effort.Alone(t)
	policies := []string{
		"SW 3 7 FIXED ANCHOR FIRST", "SW 3 7 LOG BAN 3 20 30", "TB 4 1 3", "TB 4 1 3 BAN 2 20 15 FACTOR 2", "CC 2 9", "TB 4 1 3 SW 5 11 LOG CALLS",
		"CC 2 9 SW 6 11 FIXED BAN 4 30 20", "TB 5 1 2 INTERVAL SW 5 9", "SW 0 60", "SW 4 7 LOG", "CC 2 5 TB 4 1 2 SW 6 9 FIXED",
	}
	var p played
	for p.seed = range effort.Steps(20, 2000) {
		rnd := rand.New(rand.NewPCG(5, uint64(p.seed)))
		setup := []string{"RL.POLICY SET api CLASS low KEEP 50% LIMITS " + policies[rnd.IntN(len(policies))]}
		for _, more := range []string{
			"RL.POLICY TRY api LIMITS SW 2 9", "RL.EXEMPT api d", "RL.OVERRIDE SET api c LIMITS TB 2 1 5",
			"RL.OVERRIDE SET api a LIMITS CC 2 5 SW 3 9 LOG", "RL.BOOST api b 2 EX 1000",
		} {
			if rnd.IntN(3) == 0 {
				setup = append(setup, more)
			}
		}
		p.playAsEmbedded(t, rnd, setup, waitingCall, "RL.POLICY GET api")
	}
	p.enough(t)
}

// waitingCall draws a call of client c.
func waitingCall(rnd *rand.Rand, c int) string {
	key := string("aaabbcd"[rnd.IntN(7)])
	words := fmt.Sprintf("RL.USE api %s %d MEMBER m%d", key, 1+rnd.IntN(3), c)
	switch rnd.IntN(10) {
	case 0:
		return "RL.RESET api " + key
	case 1:
		return "CC.RELEASE api:" + key + " m" + fmt.Sprint(c)
	case 2:
		return fmt.Sprintf("RL.USE api %s %d", key, -1-rnd.IntN(2))
	case 3:
		return words
	case 4:
		words += " CLASS low"
	}
	if rnd.IntN(4) == 0 {
		words += " WITHDETAILS"
	}
	if rnd.IntN(3) == 0 {
		return words + " BLOCK 0"
	}
	return words + fmt.Sprintf(" MS BLOCK %d", 1000*rnd.IntN(20)+1+rnd.IntN(90))
}

// TestNoCallIsDeniedBeforeTheStoreHasAnswered: the time of BLOCK begins when the first attempt has found no room, so a store
// that takes longer than that denies no call, and no such denial bans a key.
func TestNoCallIsDeniedBeforeTheStoreHasAnswered(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		q := &queue{t, w, e.clock, []*inproc.Node{startOver(w, e)}}
		q.set("RL.POLICY SET api LIMITS SW 1 60 FIXED ANCHOR FIRST BAN 1 60 600")
		slowly := func(words, want string) {
			gate := make(chan struct{})
			e.setGate(gate)
			c := q.waits(0, words)
			q.advance(50 * time.Millisecond)
			c.Silent()
			e.setGate(nil)
			close(gate)
			require.Equal(t, want, c.Reply(), words)
		}
		slowly("RL.USE api k BLOCK 10 MS", inproc.Five(0, 1, 0, -1, 60_000))
		slowly("RL.USE api l AND api m BLOCK 10 MS", inproc.Five(0, 1, 0, -1, 60_000))
		slowly("SW.ALLOW k 1 60 FIXED ANCHOR FIRST BLOCK 0.01", inproc.Five(0, 1, 0, -1, 60))
		c := q.waits(0, "SW.ALLOW k 1 60 FIXED ANCHOR FIRST BLOCK 0.01")
		q.advance(10 * time.Millisecond)
		require.Equal(t, inproc.Five(1, 1, 0, 60, 60), c.Reply())
	})
}

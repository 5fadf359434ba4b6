package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/simnet"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/server"
)

// TestUseWaitsForSeveralPoliciesOverAStoreAsEmbedded draws calls under several policies that wait, and others, and plays them
// on a server with a keyspace and on one with a store: the replies, their instants, bans, notices and what is counted are the
// same.
func TestUseWaitsForSeveralPoliciesOverAStoreAsEmbedded(t *testing.T) {
	effort.Alone(t)
	users := []string{
		"SW 3 7 FIXED ANCHOR FIRST", "SW 3 7 LOG BAN 3 20 30", "TB 4 1 3", "TB 4 1 3 BAN 2 20 15 FACTOR 2", "CC 2 9 SW 6 11 FIXED",
		"TB 5 1 2 INTERVAL SW 5 9 BAN 2 10 5",
	}
	teams := []string{"SW 6 7 FIXED ANCHOR FIRST", "TB 9 1 2 BAN 4 20 12", "SW 8 9 LOG TB 9 1 1", "CC 3 9", "CC 4 7 TB 7 1 1 BAN 2 30 10"}
	var p played
	for p.seed = range effort.Steps(20, 2000) {
		rnd := rand.New(rand.NewPCG(6, uint64(p.seed)))
		user := users[rnd.IntN(len(users))]
		setup := []string{
			"RL.POLICY SET user NOTIFY 80% CLASS low KEEP 50% LIMITS " + user,
			"RL.POLICY SET team NOTIFY 90% CLASS low KEEP 25% LIMITS " + teams[rnd.IntN(len(teams))],
			"RL.POLICY SET quiet SHADOW NOTIFY 50% CLASS low KEEP 0% LIMITS SW 3 5 LOG CC 2 7",
		}
		for _, more := range []string{
			"RL.POLICY TRY team LIMITS SW 2 9", "RL.EXEMPT user d", "RL.OVERRIDE SET user c LIMITS NONE",
			"RL.OVERRIDE SET team x LIMITS CC 2 5 SW 5 9 LOG BAN 2 9 9", "RL.BOOST user b 2 EX 1000", "RL.BLOCK team y EX 20",
		} {
			if rnd.IntN(3) == 0 {
				setup = append(setup, more)
			}
		}
		looks := []string{"RL.POLICY GET user", "RL.POLICY GET team", "RL.POLICY GET quiet"}
		for _, u := range "abcd" {
			looks = append(looks, fmt.Sprintf("RL.USE user %c PEEK MEMBER new WITHDETAILS MS", u), fmt.Sprintf("RL.USE quiet %c PEEK MEMBER new WITHDETAILS MS", u))
		}
		looks = append(looks, "RL.USE team x PEEK MEMBER new WITHDETAILS MS", "RL.USE team y PEEK MEMBER new WITHDETAILS MS")
		limits, _, _ := strings.Cut(user, " BAN")
		changes := []string{ // none changes the rate of a limit: the first in line of a keyspace would not see the room that comes sooner
			"RL.POLICY SET user CLASS low KEEP 20% LIMITS " + limits + " SW 4 9 LOG", "RL.POLICY SET user NOTIFY 80% CLASS low KEEP 50% LIMITS " + user,
			"RL.BLOCK user a EX 3", "RL.UNBLOCK user a",
		}
		call := func(rnd *rand.Rand, c int) string { return severalWaitingCall(rnd, c, changes) }
		p.playAsEmbedded(t, rnd, setup, call, looks...)
	}
	p.enough(t)
	require.Positive(t, p.told)
}

// severalWaitingCall draws a call of client c, or one of changes. The keys of calls that may pass at one instant are such that those which
// charge the same state wait in the same queue, so that their order is known.
func severalWaitingCall(rnd *rand.Rand, c int, changes []string) string {
	user := "aaabbcd"[rnd.IntN(7)]
	team := map[byte]string{'a': "x", 'b': "x", 'c': "y", 'd': "y"}[user]
	quantity := func() string {
		switch n := rnd.IntN(12); n {
		case 0:
			return " 0"
		case 1:
			return " -1"
		case 2:
			return ""
		default:
			return fmt.Sprintf(" %d", 1+n%3)
		}
	}
	parts := []string{fmt.Sprintf("user %c%s", user, quantity())}
	if rnd.IntN(4) > 0 {
		parts = append(parts, "team "+team+quantity())
	}
	if rnd.IntN(2) == 0 {
		parts = append(parts, fmt.Sprintf("quiet %c%s", user, quantity()))
	}
	rnd.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	if rnd.IntN(25) == 0 { // those that wait keep their limits
		return changes[rnd.IntN(len(changes))]
	}
	words := "RL.USE " + strings.Join(parts, " AND ")
	options := fmt.Sprintf(" MEMBER m%d", c)
	switch rnd.IntN(14) {
	case 0:
		return "RL.RESET team " + team
	case 1:
		return fmt.Sprintf("CC.RELEASE team:%s m%d", team, c)
	case 2:
		return fmt.Sprintf("CC.RELEASE user:%c m%d", user, c)
	case 3:
		return fmt.Sprintf("RL.USE user %c -2 AND team %s -2%s", user, team, options)
	case 4:
		return words + options
	case 5:
		return fmt.Sprintf("DEL user:%c", user)
	case 6:
		options = " CLASS low" + options
	}
	if rnd.IntN(3) > 0 {
		options += " WITHDETAILS"
	}
	if rnd.IntN(3) == 0 {
		return words + options + " BLOCK 0"
	}
	return words + options + fmt.Sprintf(" MS BLOCK %d", 1000*rnd.IntN(20)+1+rnd.IntN(90))
}

// several are policies whose calls wait, and a call of the user a and the team x under them which leaves no room.
var several = []string{
	"RL.POLICY SET user LIMITS SW 1 60 FIXED ANCHOR FIRST TB 9 1 60 BAN 9 600 700", "RL.POLICY SET team LIMITS SW 3 600 FIXED ANCHOR FIRST BAN 9 600 800",
	"RL.POLICY SET quiet SHADOW LIMITS SW 1 600 FIXED ANCHOR FIRST",
}

// TestUseWaitsForSeveralPoliciesOverAStore: what makes room under any of the policies lets the call pass, at once on the
// server that makes it, and within a tenth of a second on another one. All policies are charged, or none.
func TestUseWaitsForSeveralPoliciesOverAStore(t *testing.T) {
	for name, room := range map[string][2]string{
		"refunds":              {"RL.USE user a -1", "RL.USE team x -1"},
		"refunds of both":      {"RL.USE user a -1 AND team y -1", "RL.USE team x -1 AND user z -1"},
		"resets":               {"RL.RESET user a", "RL.RESET team x"},
		"keys that are gone":   {"DEL user:a", "DEL team:x"},
		"refunds of one limit": {"SW.ALLOW user:a 1 60 -1 FIXED ANCHOR FIRST", "SW.ALLOW team:x 3 600 -1 FIXED ANCHOR FIRST"},
	} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				q := queueOver(t, w, 2)
				q.set(several...)
				one, other := q.nodes[0].Dial(), q.nodes[1].Dial()
				require.Equal(t, inproc.Five(0, 1, 0, -1, 600), one.Say("RL.USE user a AND team x 3 AND quiet a"))
				here := q.waits(0, "RL.USE quiet a AND team x AND user a BLOCK 0 WITHDETAILS")
				there := q.waits(1, "RL.USE user a AND team x BLOCK 0")
				next := q.waits(0, "RL.USE user a AND team x BLOCK 0")
				require.NotContains(t, one.Say(room[0]), "-ERR")
				w.Settle()
				inproc.Silent(here, there, next)
				require.Equal(t, ":1\r\n", other.Say("CLIENT UNBLOCK "+q.idOf(1)))
				there.Expect(inproc.Five(1, 3, 0, 600, 600))
				require.NotContains(t, one.Say(room[1]), "-ERR")
				require.Regexp(t, `(?s)^\*2\r\n\*5\r\n:0\r\n.*\*3\r\n\*1\r\n\*5\r\n:1\r\n:1\r\n:0\r\n:600\r\n:600\r\n`, here.Reply(), "the shadow would deny it")

				there = q.waits(1, "RL.USE team x AND user a BLOCK 0")
				require.NoError(t, next.Close())
				require.EqualValues(t, 1, q.blocked())
				require.NotContains(t, one.Say(room[0]), "-ERR")
				require.NotContains(t, one.Say(room[1]), "-ERR")
				w.Settle()
				there.Silent()
				q.advance(poll)
				require.Contains(t, there.Reply(), "*5\r\n:0\r\n")
				require.Zero(t, q.blocked())
				require.Contains(t, one.Say("RL.POLICY GET quiet"), inproc.Bulk("shadow-would-be-denied")+":1\r\n")
			})
		})
	}
}

// TestUseStopsWaitingForSeveralPoliciesOverAStore: a wait ends at its timeout, by CLIENT UNBLOCK, when the user loses the
// permission for one of the keys, and when its client leaves. The policies that deny it count that.
func TestUseStopsWaitingForSeveralPoliciesOverAStore(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		q := queueOver(t, w, 1)
		q.set(several...)
		admin := q.nodes[0].Dial()
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), admin.Say("RL.USE user a"))
		const call = "RL.USE team x AND user a AND quiet a BLOCK 0"
		late := q.waits(0, call+".05")
		q.advance(50 * time.Millisecond)
		late.Expect(inproc.Five(1, 1, 0, 60, 60))
		unblocked := q.waits(0, call+" WITHDETAILS")
		require.Equal(t, ":1\r\n", admin.Say("CLIENT UNBLOCK "+q.idOf(0)))
		require.Regexp(t, `(?s)^\*2\r\n\*5\r\n:1\r\n:1\r\n:0\r\n:60\r\n:60\r\n\*3\r\n\*1\r\n\*5\r\n:0\r\n:3\r\n:3\r\n.*\*-1\r\n$`, unblocked.Reply())
		failed := q.waits(0, call)
		require.Equal(t, ":1\r\n", admin.Say("CLIENT UNBLOCK "+q.idOf(0)+" ERROR"))
		failed.Expect("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")
		gone := q.waits(0, call)
		require.NoError(t, gone.Conn.(*simnet.Conn).CloseWrite())
		require.Zero(t, q.blocked())

		app := q.nodes[0].Dial().As(admin, "+rl.use", "~*")
		app.Command(strings.Fields(call)...)
		require.EqualValues(t, 1, q.blocked())
		require.Equal(t, inproc.OK, admin.Say("ACL SETUSER app resetkeys ~team:* ~quiet:*"))
		require.Equal(t, ":3\r\n", admin.Say("RL.RESET user a"), "two clauses, and the denials")
		require.Contains(t, app.Reply(), "-NOPERM")
		require.Zero(t, q.blocked())
		counts := func(policy string, denied int) {
			require.Contains(t, admin.Say("RL.POLICY GET "+policy), inproc.Bulk("denied")+fmt.Sprintf(":%d\r\n", denied), policy)
		}
		counts("user", 3)
		counts("team", 0)
		require.Equal(t, inproc.Five(0, 3, 2, -1, 600), admin.Say("RL.USE team x"), "the calls have taken nothing")

		require.Equal(t, inproc.Five(1, 1, 1, -1, 600), admin.Say("RL.USE team x AND user a 2 BLOCK 0"), "it can never pass")
		require.Contains(t, admin.Say("RL.USE team x AND user a 1 1 1 BLOCK 0"), "-ERR policy 'user': 3 quantities for 2 clauses")
		require.Contains(t, admin.Say("RL.USE team x ANY user a BLOCK 0"), "-ERR syntax error near 'BLOCK': with ANY no call waits")
	})
}

// TestBansOfSeveralPoliciesOverAStore: a ban under any of the policies denies a call with BLOCK at once, until the last of the
// bans ends, and only the policies that ban count it.
func TestBansOfSeveralPoliciesOverAStore(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		q := queueOver(t, w, 1)
		q.set("RL.POLICY SET user LIMITS SW 1 60 FIXED ANCHOR FIRST TB 5 1 60 BAN 1 60 600", "RL.POLICY SET team LIMITS SW 9 60 FIXED ANCHOR FIRST",
			"RL.POLICY SET site LIMITS SW 2 60 FIXED ANCHOR FIRST BAN 1 60 700", "RL.POLICY SET quiet SHADOW LIMITS SW 1 60 BAN 1 60 600")
		c := q.nodes[0].Dial()
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), c.Say("RL.USE user a AND site s AND team x"))
		require.Equal(t, inproc.Five(1, 1, 0, 600, 600), c.Say("RL.USE user a"))
		require.Equal(t, inproc.Five(1, 1, 0, 600, 600), c.Say("RL.USE team x AND user a AND quiet a BLOCK 0"))
		require.Equal(t, inproc.Five(0, 1, 1, -1, 60), c.Say("RL.USE team x AND user a -1 AND quiet a BLOCK 0"), "units can be given back")
		require.Equal(t, inproc.Five(1, 2, 1, 700, 700), c.Say("RL.USE site s 2"))
		five := func(n, left, until int64) string { return inproc.Five(1, n, 0, left, until) }
		require.Equal(t, "*2\r\n"+five(1, 700_000, 700_000)+"*3\r\n*2\r\n"+five(1, 600_000, 600_000)+five(5, 600_000, 600_000)+
			"*-1\r\n*1\r\n"+five(2, 700_000, 700_000), c.Say("RL.USE user a 0 AND team x AND site s MS BLOCK 0 WITHDETAILS"))
		require.Equal(t, "*2\r\n"+five(2, 700_000, 700_000)+"*2\r\n*1\r\n"+five(2, 700_000, 700_000)+"*2\r\n"+five(1, 600_000, 600_000)+
			five(5, 600_000, 600_000), c.Say("RL.USE site s AND user a MS BLOCK 0 WITHDETAILS"))
		require.Zero(t, q.blocked())
		counts := func(policy, denied, banned string) {
			t.Helper()
			require.Contains(t, c.Say("RL.POLICY GET "+policy), inproc.Bulk("denied")+denied+inproc.Bulk("blocked")+":0\r\n"+inproc.Bulk("banned")+banned, policy)
		}
		counts("user", ":3\r\n", ":2\r\n") // a quantity of 0 does not count
		counts("site", ":3\r\n", ":2\r\n")
		counts("team", ":0\r\n", ":0\r\n")
		counts("quiet", ":0\r\n", ":0\r\n")
	})
}

// apartStore is a store whose states are in several slots.
type apartStore struct{ *sharedStore }

func (e apartStore) open(o remote.Options) (server.RemoteStore, error) {
	_, err := e.sharedStore.open(o)
	return e, err
}

func (e apartStore) Submit(asks []*decide.Ask, together bool, done func()) {
	if len(asks) == 1 && len(asks[0].Others) > 0 {
		asks[0].Err = decide.ErrStatesApart
		done()
		return
	}
	e.sharedStore.Submit(asks, together, done)
}

// TestNoCallWaitsForStatesInSeveralSlots: it gets the error that it gets without BLOCK, whether bans are looked for or not.
func TestNoCallWaitsForStatesInSeveralSlots(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := apartStore{newSharedStore(t)}
		node := w.StartWith(func(o *server.Options) { o.Clock, o.OpenStore = e.clock, e.open }, "--store", "redis://127.0.0.1:1")
		q := &queue{t, w, e.clock, []*inproc.Node{node}}
		q.set("RL.POLICY SET a LIMITS SW 1 60", "RL.POLICY SET b LIMITS SW 1 60 BAN 1 60 600")
		c := node.Dial()
		for _, words := range []string{"RL.USE a k AND a l", "RL.USE a k AND b k"} {
			want := c.Say(words)
			require.Contains(t, want, "-CROSSSLOT")
			require.Equal(t, want, c.Say(words+" BLOCK 5"))
		}
		require.Zero(t, q.blocked())
		require.Contains(t, c.Say("RL.USE a k BLOCK 5"), "*5\r\n:0\r\n")
	})
}

// TestCallsThatWaitForSeveralPoliciesAreOnTheAccount: what such a call keeps while it waits is in the memory of clients, with
// a store and without one.
func TestCallsThatWaitForSeveralPoliciesAreOnTheAccount(t *testing.T) {
	effort.Alone(t)
	const clients = 50
	limits := " LIMITS SW 1 86400 FIXED SW 2 86400 FIXED SW 3 86400 FIXED BAN 9 60 60"
	for name, start := range map[string]func(t *testing.T, w *inproc.World) *inproc.Node{
		"keyspace": func(_ *testing.T, w *inproc.World) *inproc.Node { return w.Start() },
		"store":    func(t *testing.T, w *inproc.World) *inproc.Node { return startOver(w, newSharedStore(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			for keys, size := range map[string]int{"short keys": 10, "long keys": 8000} {
				inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
					node := start(t, w)
					q := &queue{t, w, nil, []*inproc.Node{node}}
					key := strings.Repeat("k", size)
					q.set("RL.POLICY SET a NOTIFY 50%"+limits, "RL.POLICY SET b"+limits, "RL.POLICY SET s SHADOW NOTIFY 50%"+limits)
					require.Contains(t, node.Dial().Say("RL.USE a "+key+" AND b "+key), "*5\r\n:0\r\n")
					var all []*inproc.Client
					var ids []string
					for range clients {
						c := node.Dial()
						ids, all = append(ids, c.ID()), append(all, c)
						c.Command(strings.Fields("RL.USE a " + key + " AND b " + key + " AND s " + key + " BLOCK 0")...)
					}
					require.EqualValues(t, clients, q.blocked())
					held, heap := node.Engine().ClientMemory(), heapInUse()
					admin := node.Dial()
					for i, c := range all {
						require.Equal(t, ":1\r\n", admin.Say("CLIENT UNBLOCK "+ids[i]))
						require.Contains(t, c.Reply(), "*5\r\n:1\r\n")
					}
					held, heap = held-node.Engine().ClientMemory(), heap-heapInUse()
					t.Log(keys, "held", held/clients, "freed", int64(heap)/clients)
					require.LessOrEqual(t, int64(heap), held*3/2) // other things of the process are in the heap, too
				})
			}
		})
	}
}

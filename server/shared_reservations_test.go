package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// TestReservationsOfSeveralPoliciesOverAStore: any server settles what one has reserved, once, and wakes its clients that wait
// for room.
func TestReservationsOfSeveralPoliciesOverAStore(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		q := queueOver(t, w, 2)
		q.set("RL.POLICY SET api LIMITS SW 9 60 FIXED ANCHOR FIRST CALLS TB 90 90 60", "RL.POLICY SET org LIMITS SW 40 60 FIXED ANCHOR FIRST CC 5 60")
		clients := []*inproc.Client{q.nodes[0].Dial(), q.nodes[1].Dial()}
		const call = "RL.USE api k 30 AND org o 30 RESERVE r 30"
		for i, x := range []exchange{
			{call, inproc.Five(0, 5, 4, -1, 60)},
			{call, inproc.Five(0, 5, 4, -1, 60)},
			{"RL.COMMIT o r 1 POLICY org", ":-1\r\n"},
			{"RL.COMMIT k r 1 2 POLICY api", "-ERR RL.COMMIT needs one number, or one for each TB and SW clause of the reservation\r\n"},
			{"RL.RENEW k r 60 POLICY api", ":1\r\n"},
		} {
			require.Equal(t, x.reply, clients[i%2].Do(strings.Fields(x.command)...), x.command)
		}
		c := clients[0]
		waiting := q.waits(0, "RL.USE api k 70 BLOCK 0")
		require.Equal(t, ":1\r\n", c.Say("RL.COMMIT k r 40 15 20 POLICY api"))
		waiting.Expect(inproc.Five(0, 90, 5, -1, 60))
		require.Equal(t, ":0\r\n", clients[1].Say("RL.COMMIT k r 40 15 20 POLICY api"))
		require.Equal(t, "-IDENDED The reservation has ended\r\n", clients[1].Say(call))
		require.Equal(t, inproc.Five(0, 5, 5, -1, 60), clients[1].Say("RL.USE org o 0 MEMBER m"))
		require.Contains(t, clients[1].Say("RL.USE org o 0 MEMBER m WITHDETAILS"), inproc.Five(0, 40, 20, -1, 60))
		require.Contains(t, clients[1].Say("RL.USE api k 0 WITHDETAILS"), inproc.Five(0, 90, 5, -1, 57))
		require.Contains(t, c.Say("RL.POLICY GET api"), "$9\r\nestimated\r\n:30\r\n$6\r\nactual\r\n:15\r\n")
	})
}

// reserving draws calls that reserve under several policies, and their settlements.
type reserving struct {
	*rand.Rand
	made []string // the first policy and key, and the id, of the latest reservations
	n    int
}

// policy draws the name of a policy, and what RL.POLICY SET says of it.
func (r *reserving) policy() (name, rules string) {
	name = []string{"api", "org", "quiet"}[r.IntN(3)]
	limits := []string{
		"SW 9 20 FIXED", "TB 9 3 10", "SW 9 20 LOG CALLS TB 20 5 10", "TB 9 9 20 CC 3 30", "SW 8 15 SW 20 60 FIXED", "SW 9 20 BUCKETS 4",
	}[r.IntN(6)]
	if name == "quiet" {
		limits = "SHADOW LIMITS " + limits
	} else {
		limits = "LIMITS " + limits
	}
	if r.IntN(4) == 0 {
		return name, "KEY IP 24 56 " + limits
	}
	return name, limits
}

func (r *reserving) key() string { return []string{"10.0.0.1", "10.0.0.2", "10.0.9.9"}[r.IntN(3)] }

// call draws a command.
func (r *reserving) call() string {
	if n := r.IntN(20); len(r.made) > 0 && n < 9 {
		of := strings.Fields(r.made[max(0, len(r.made)-1-r.IntN(5))])
		if r.IntN(8) == 0 {
			of[0], of[1] = []string{"api", "org", "quiet"}[r.IntN(3)], r.key()
		}
		switch r.IntN(6) {
		case 0:
			return fmt.Sprintf("RL.CANCEL %s %s POLICY %s", of[1], of[2], of[0])
		case 1:
			return fmt.Sprintf("RL.RENEW %s %s %d POLICY %s", of[1], of[2], 1+r.IntN(20), of[0])
		case 2:
			return fmt.Sprintf("RL.COMMIT %s %s %d %d POLICY %s", of[1], of[2], r.IntN(5), r.IntN(5), of[0])
		}
		return fmt.Sprintf("RL.COMMIT %s %s %d POLICY %s", of[1], of[2], r.IntN(7), of[0])
	} else if n == 9 {
		return "RL.RESET " + []string{"api", "org", "quiet"}[r.IntN(3)] + " " + r.key()
	}
	names, words := []string{"api", "org", "quiet"}, ""
	first := ""
	for i, at := range r.Perm(3)[:2+r.IntN(2)] {
		key := r.key()
		if i == 0 {
			first = names[at] + " " + key
			words = "RL.USE"
		} else {
			words += " AND"
		}
		words += fmt.Sprintf(" %s %s %d", names[at], key, 1+r.IntN(3))
	}
	if r.IntN(4) == 0 {
		words += " MEMBER m" + fmt.Sprint(r.IntN(2))
	}
	switch r.IntN(6) {
	case 0:
		words += " FORCE"
	case 1:
		return words + " MEMBER x"
	}
	if r.n++; r.IntN(6) == 0 {
		r.n--
	}
	r.made = append(r.made, fmt.Sprint(first, " r", r.n))
	return words + fmt.Sprintf(" RESERVE r%d %d WITHDETAILS", r.n, []int{1, 5, 30}[r.IntN(3)])
}

// TestReservationsOfSeveralPoliciesOverAStoreAsEmbedded draws calls under several policies that reserve, and settlements, and
// plays them on a server with a keyspace and on servers with a store, while policies change, are deleted, and keys are
// reset: the replies are the same.
func TestReservationsOfSeveralPoliciesOverAStoreAsEmbedded(t *testing.T) {
	effort.Alone(t)
	said := map[string]int{}
	for seed := range effort.Steps(30, 3000) {
		inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
			embedded, clock := w.StartStepped()
			servers := [2]*queue{{t, w, clock, []*inproc.Node{embedded}}, queueOver(t, w, 1+seed%2)}
			r := &reserving{Rand: rand.New(rand.NewPCG(6, uint64(seed)))}
			var setup []string
			for _, name := range []string{"api", "org", "quiet"} {
				is, rules := r.policy()
				for ; is != name; is, rules = r.policy() {
				}
				setup = append(setup, "RL.POLICY SET "+name+" "+rules)
			}
			var clients [2][]*inproc.Client
			for i, q := range servers {
				q.set(setup...)
				for _, n := range q.nodes {
					clients[i] = append(clients[i], n.Dial())
				}
			}
			for range 80 {
				switch r.IntN(40) {
				case 0:
					name, rules := r.policy()
					words := "RL.POLICY SET " + name + " " + rules
					if r.IntN(3) == 0 {
						words = "RL.POLICY DEL " + name
					}
					for _, q := range servers {
						q.set(words)
					}
					continue
				case 1, 2, 3, 4, 5, 6, 7:
					d := []time.Duration{time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 40 * time.Second}[r.IntN(5)]
					for _, q := range servers {
						require.NoError(t, q.clock.Manual.Advance(d, w.Settle))
					}
					continue
				}
				words := r.call()
				want := clients[0][0].Do(strings.Fields(words)...)
				got := clients[1][r.IntN(len(clients[1]))].Do(strings.Fields(words)...)
				require.Equal(t, want, got, "seed %d, %s: %s", seed, setup, words)
				command, _, _ := strings.Cut(words, " ")
				outcome := want[:min(2, len(want))]
				if command == "RL.USE" && strings.HasPrefix(want, "*2\r\n*5\r\n") {
					outcome = want[8:10]
				}
				said[command+" "+outcome]++
			}
		})
	}
	t.Log(said)
	for _, what := range []string{"RL.COMMIT :1", "RL.COMMIT :0", "RL.COMMIT :2", "RL.COMMIT :-", "RL.CANCEL :1", "RL.RENEW :1", "RL.USE :0", "RL.USE :1", "RL.RESET :1"} {
		require.Greater(t, said[what], 5, what)
	}
}

//go:build real

package server_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/storetest"
)

// withoutTimes returns a reply without the numbers of decisions that depend on the time: the last two of five.
func withoutTimes(reply string) string {
	lines := strings.Split(reply, "\r\n")
	for i := range lines {
		if lines[i] == "*5" {
			lines[i+4], lines[i+5] = "", ""
		}
	}
	return strings.Join(lines, "\r\n")
}

// TestReservationsOfSeveralPoliciesOverARealStore draws calls that reserve under several policies, and settlements, and plays them
// on a server with a keyspace and on two with a store: what they grant and settle is the same. No units come back meanwhile.
func TestReservationsOfSeveralPoliciesOverARealStore(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		url := e.Single(t, storetest.Options{}).URL()
		embedded := inproc.ServeTimed(t, "auto").Dial()
		var shared []*inproc.Client
		for range 2 {
			c := inproc.ServeTimed(t, "auto", "--store", url, "--store-timeout", "5000").Dial()
			inproc.Await(t, "the policies", func() bool { return c.Info("store_policies_age_ms") != "-1" })
			shared = append(shared, c)
		}
		for name, limits := range map[string]string{
			"api": "SW 60 1000000 LOG CALLS TB 90 1 100000", "org": "TB 200 1 100000 CC 30 1000", "quiet": "SHADOW LIMITS SW 30 1000000 LOG SW 400 DAY",
		} {
			words := "RL.POLICY SET " + name + " LIMITS " + limits
			words = strings.Replace(words, "LIMITS SHADOW", "SHADOW", 1)
			require.Equal(t, inproc.OK, embedded.Say(words))
			require.Equal(t, inproc.OK, shared[0].Say(words))
			inproc.Await(t, "the policy", func() bool { return !strings.HasPrefix(shared[1].Say("RL.POLICY GET "+name), "-") })
		}
		rnd := rand.New(rand.NewPCG(1, 2))
		names, outcomes := []string{"api", "org", "quiet"}, map[string]int{}
		var made []string
		for i := range 2000 {
			words := ""
			switch n := rnd.IntN(10); {
			case n < 4 && len(made) > 0:
				of := strings.Fields(made[max(0, len(made)-1-rnd.IntN(4))])
				words = fmt.Sprintf([]string{"RL.COMMIT %s %s %d POLICY %s", "RL.CANCEL %s %s POLICY %[4]s", "RL.RENEW %s %s 90 POLICY %[4]s"}[max(0, rnd.IntN(5)-2)], of[1], of[2], rnd.IntN(4), of[0])
				words, _, _ = strings.Cut(words, "%!")
			default:
				all := slices.Clone(names)
				rnd.Shuffle(3, func(i, j int) { all[i], all[j] = all[j], all[i] })
				key := fmt.Sprint("k", i/100)
				words = "RL.USE"
				for _, name := range all[:2+rnd.IntN(2)] {
					words += fmt.Sprintf(" %s %s %d AND", name, key, 1+rnd.IntN(4))
				}
				words = strings.TrimSuffix(words, " AND") + fmt.Sprintf(" RESERVE r%d 900 WITHDETAILS", i)
				made = append(made, fmt.Sprintf("%s %s r%d", all[0], key, i))
			}
			want, got := embedded.Say(words), shared[rnd.IntN(2)].Say(words)
			require.Equal(t, withoutTimes(want), withoutTimes(got), "%d: %s", i, words)
			command, _, _ := strings.Cut(words, " ")
			outcomes[command+want[:2]]++
		}
		t.Log(outcomes)
		require.Greater(t, outcomes["RL.COMMIT:1"], 100)
		require.Greater(t, outcomes["RL.COMMIT:0"], 100)

		c := shared[0]
		require.NotContains(t, c.Say("RL.USE api own 2 AND org own 2 RESERVE own 90"), "-ERR")
		require.Equal(t, "-ERR with --store a reservation of several policies is settled with POLICY\r\n", c.Say("RL.COMMIT api:own own 1"))
		require.Equal(t, inproc.OK, c.Say("MULTI"))
		c.Say("RL.COMMIT own own 1 POLICY api")
		c.Say("RL.CANCEL own none POLICY api")
		require.Equal(t, "*2\r\n-ERR with --store a transaction cannot settle a reservation of RL.MULTI or of several policies\r\n:-1\r\n", c.Say("EXEC"))
		require.Equal(t, ":1\r\n", c.Say("RL.CANCEL own own POLICY api"))
	})
}

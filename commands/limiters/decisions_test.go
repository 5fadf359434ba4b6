package limiters_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/stats"
)

// groupCounts returns the decisions that the server has counted for each group of keys.
func groupCounts(s *inproc.Node) map[string]stats.GroupCount {
	counts := make(map[string]stats.GroupCount)
	for _, n := range command.Find[ratelimit.Service](&s.Engine().Server).Keys.Groups().Snapshot() {
		name := n.Label
		n.Name, n.Label = "", ""
		counts[name] = n
	}
	return counts
}

// startWithStore starts a server with the option store set to a test double.
func startWithStore(t *testing.T, w *inproc.World) *inproc.Node {
	now := func() int64 { return time.Now().UnixNano() }
	ks := keyspace.New(keyspace.Options{Databases: 1, Clock: clock.NewSystem(clock.Options{}.WithSources(now, now, now))})
	t.Cleanup(ks.Close)
	double := remotedouble.New(ks, 1)
	return w.StartWith(func(o *server.Options) {
		o.OpenStore = func(remote.Options) (server.RemoteStore, error) { return double, nil }
	}, "--store", "redis://127.0.0.1")
}

// TestDecisionsAreCountedByGroup: the decisions of every command and clause are counted, whether
// this server or a store decides.
func TestDecisionsAreCountedByGroup(t *testing.T) {
	for _, kind := range []string{"here", "store"} {
		t.Run(kind, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				var s *inproc.Node
				if kind == "store" {
					s = startWithStore(t, w)
				} else {
					s = w.Start()
				}
				c := s.Dial()
				do := func(times int, format string) {
					t.Helper()
					for range times {
						c.Send(format + "\r\n")
						require.NotContains(t, c.Reply(), "ERR")
					}
				}
				for i, group := range []string{"cl", "sw", "tb", "cc", "m"} {
					do(16, fmt.Sprintf("CL.THROTTLE %s:warm 1000 1 60", group)) // the 16th call is counted by its key
					require.Equal(t, stats.GroupCount{Calls: 1}, groupCounts(s)[group])
					require.EqualValues(t, 15*(i+1), groupCounts(s)["other"].Calls)
				}
				do(10, "CL.THROTTLE cl:a 4 1 60")
				do(10, "SW.ALLOW sw:a 5 60 1 FIXED")
				do(10, "TB.ACQUIRE tb:a 5 1 60")
				for i := range 10 {
					do(1, fmt.Sprintf("CC.ACQUIRE cc:a 5 60 member%d", i))
				}
				do(3, "CL.THROTTLE plain 1000 1 60")
				do(10, "RL.MULTI 2 m:a m:b TB 4 1 60 SW 1000 86400 FIXED")
				counts := groupCounts(s)
				require.Equal(t, stats.GroupCount{Calls: 11, Denied: 5, Near: 1}, counts["cl"])
				require.Equal(t, stats.GroupCount{Calls: 11, Denied: 5, Near: 1}, counts["sw"])
				require.Equal(t, stats.GroupCount{Calls: 11, Denied: 5, Near: 1}, counts["tb"])
				require.Equal(t, stats.GroupCount{Calls: 11, Denied: 5, Near: 1}, counts["cc"])
				require.Equal(t, stats.GroupCount{Calls: 11, Denied: 6, Near: 1}, counts["m"], "a call counts once, not its clauses")
				require.Equal(t, stats.GroupCount{Calls: 3}, counts["(none)"])

				do(1, "CONFIG SET metrics-near-limit 10")
				do(1, "CL.THROTTLE cl:b 9 1 60")
				do(1, "CL.THROTTLE cl:b 9 1 60")
				require.EqualValues(t, 2, groupCounts(s)["cl"].Near, "9 of 10 left is no less than 90 %, 8 is")
				c.Send("MULTI\r\nCL.THROTTLE cl:c 1000 1 60\r\nEXEC\r\n")
				c.Reply()
				c.Reply()
				c.Reply()
				require.EqualValues(t, 14, groupCounts(s)["cl"].Calls)
				do(1, "CONFIG RESETSTAT")
				require.Empty(t, groupCounts(s))
			})
		})
	}
}

// TestWaitsAreCountedAsTheyEnd: a call that waits for room counts once, as allowed or denied.
func TestWaitsAreCountedAsTheyEnd(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--metrics-group-by", "none")
		c := s.Dial()
		c.Send("SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST\r\n")
		c.Expect(inproc.Five(0, 1, 0, -1, 60))
		c.Send("SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 1\r\n")
		w.Settle()
		require.Equal(t, 1, s.Keyspace().Waiting())
		require.EqualValues(t, 1, groupCounts(s)["(none)"].Calls)
		c.Expect(inproc.Five(1, 1, 0, 59, 59))
		require.Equal(t, stats.GroupCount{Calls: 2, Denied: 1, Near: 1}, groupCounts(s)["(none)"])
		c.Send("SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n")
		w.Settle()
		require.Equal(t, 1, s.Keyspace().Waiting())
		c.Expect(inproc.Five(0, 1, 0, -1, 60))
		require.Equal(t, stats.GroupCount{Calls: 3, Denied: 1, Near: 2}, groupCounts(s)["(none)"])
		c.Send("INFO ratelimit\r\n")
		require.Contains(t, c.Reply(), "sw.allow:allowed=2,denied=1,errors=0")
	})
}

// TestLongCallsAreCountedByGroup: a call with more clauses than a policy may have is counted like
// a short one: once in each group of its keys, by the clause that leaves the smallest share of
// its limit.
func TestLongCallsAreCountedByGroup(t *testing.T) {
	for _, clauses := range []int{4, 40} {
		inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
			s := w.Start()
			c := s.Dial()
			for _, group := range []string{"x", "y"} {
				for range 16 { // the 16th call is counted by its key
					c.Do("CL.THROTTLE", group+":warm", "1000", "1", "60")
				}
			}
			words := []string{"RL.MULTI", strconv.Itoa(clauses)}
			for i := range clauses {
				words = append(words, fmt.Sprintf("%s:%d", []string{"x", "y"}[i%2], i))
			}
			for i := range clauses {
				words = append(words, "SW", []string{"1000", "1"}[(i+1)/clauses], "86400", "FIXED")
			}
			for range 3 {
				require.NotContains(t, c.Do(words...), "ERR")
			}
			require.Equal(t, stats.GroupCount{Calls: 4}, groupCounts(s)["x"], "%d clauses", clauses)
			require.Equal(t, stats.GroupCount{Calls: 4, Denied: 2, Near: 1}, groupCounts(s)["y"], "%d clauses", clauses)
		})
	}
}

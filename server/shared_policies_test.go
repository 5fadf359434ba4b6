package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/remote/engine"
	"github.com/cellserver/cellserver/report"
	"github.com/cellserver/cellserver/server"
)

// inForce is the bound within which a change of policies is in force on all servers of a store.
const inForce = 1500 * time.Millisecond

// follows lets the time of the bubble pass until all servers have the changes made so far.
func follows() { time.Sleep(inForce) }

func TestServersWithOneStoreSharePolicies(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		one, other := startOver(w, e).Dial(), startOver(w, e).Dial()
		require.Equal(t, "+OK\r\n", one.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60", "LOG", "TB", "9", "1", "60"))
		follows()
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), other.Do("RL.USE", "api", "k"))
		require.Equal(t, inproc.Five(0, 2, 0, -1, 120), one.Do("RL.USE", "api", "k"), "both limits in one value")
		require.Equal(t, inproc.Five(1, 2, 0, 60, 120), other.Do("RL.USE", "api", "k"))

		require.Equal(t, "+OK\r\n", other.Do("RL.BLOCK", "api", "x", "EX", "100"))
		follows()
		require.Equal(t, inproc.Five(1, 2, 0, 100, 100), one.Do("RL.USE", "api", "x"))
		require.Equal(t, ":1\r\n", one.Do("RL.UNBLOCK", "api", "x"))
		require.Equal(t, ":0\r\n", other.Do("RL.UNBLOCK", "api", "x"), "a change begins with the changes of others")
		require.Equal(t, ":2\r\n", one.Do("RL.RESET", "api", "k"))
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), other.Do("RL.USE", "api", "k"))
		require.Equal(t, one.Do("RL.CHANGES"), other.Do("RL.CHANGES"))
		require.Equal(t, ":1\r\n", other.Do("RL.POLICY", "DEL", "api"))
		follows()
		require.Equal(t, "-NOPOLICY No such policy 'api'\r\n", one.Do("RL.USE", "api", "k"))
	})
}

// TestNoChangeOfAServerIsLost: administrators at two servers change the same policies at the same time.
func TestNoChangeOfAServerIsLost(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		nodes := []*inproc.Node{startOver(w, e), startOver(w, e), startOver(w, e)}
		first := nodes[0].Dial()
		require.Equal(t, "+OK\r\n", first.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60"))
		var under sync.WaitGroup
		for i, n := range nodes {
			c := n.Dial()
			under.Go(func() {
				for j := range 20 {
					said := c.Do("RL.OVERRIDE", "SET", "api", fmt.Sprintf("k%d-%d", i, j), "LIMITS", "SW", "5", "60")
					if said != "+OK\r\n" {
						t.Error(said)
					}
				}
			})
		}
		under.Wait()
		follows()
		for _, n := range nodes {
			c := n.Dial()
			require.Equal(t, 60, strings.Count(c.Do("RL.OVERRIDE", "LIST", "api"), "SW 5 60"))
			require.Equal(t, first.Do("RL.CHANGES", "COUNT", "100"), c.Do("RL.CHANGES", "COUNT", "100"))
			require.Equal(t, 61, strings.Count(c.Do("RL.CHANGES", "COUNT", "100"), "before"))
		}
	})
}

// TestPoliciesWhileTheStoreIsAway: a server goes on with the policies that it has, and refuses changes. A server that has
// none yet does not guess.
func TestPoliciesWhileTheStoreIsAway(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		one := startOver(w, e).Dial()
		require.Equal(t, "+OK\r\n", one.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60", "LOG"))
		e.setAway(true)
		node := startOver(w, e)
		late := node.Dial()
		follows()
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), one.Do("RL.USE", "api", "k"))
		require.Contains(t, one.Do("RL.POLICY", "GET", "api"), "SW 2 60 LOG")
		for _, words := range [][]string{{"RL.BLOCK", "api", "k"}, {"RL.POLICY", "DEL", "api"}, {"RL.POLICY", "APPLY", "policies: {}"}} {
			require.Contains(t, one.Do(words...), "-UNAVAILABLE the policies of the store are not available: ", words)
		}
		for _, words := range [][]string{
			{"RL.USE", "api", "k"},
			{"RL.EXPLAIN", "api", "k"},
			{"RL.RESET", "api", "k"},
			{"RL.COMMIT", "k", "r", "1", "POLICY", "api"},
			{"RL.POLICY", "GET", "api"},
			{"RL.POLICY", "LIST"},
			{"RL.POLICY", "DUMP"},
			{"RL.POLICY", "DIFF", "policies: {}"},
			{"RL.OVERRIDE", "LIST", "api"},
			{"RL.CHANGES"},
		} {
			require.Equal(t, "-UNAVAILABLE the policies of the store were not read yet\r\n", late.Do(words...), words)
		}
		e.clock.Advance(inForce)
		require.Contains(t, one.Do("INFO", "store"), "store_policies_age_ms:1500\r\n")
		require.Contains(t, one.Do("RL.EXPLAIN", "api", "k"), "$15\r\npolicies-age-ms\r\n:1500\r\n")
		require.Contains(t, late.Do("INFO", "store"), "store_policies_version:\r\nstore_policies_age_ms:-1\r\nstore_policies_fault:starting\r\nstore_policies_unreadable:0\r\nstore_changes_lost:0\r\n")
		require.Contains(t, node.Log.String(), "the policies of the store cannot be read: calls under policies get -UNAVAILABLE")
		e.setAway(false)
		follows()
		require.Contains(t, node.Log.String(), "the policies of the store are read again")
		require.Equal(t, inproc.Five(0, 2, 0, -1, 60), late.Do("RL.USE", "api", "k"))
		require.Contains(t, late.Do("INFO", "store"), "store_policies_version:1 ")
		require.NotContains(t, one.Do("RL.EXPLAIN", "api", "k"), "policies-age-ms")
		require.Equal(t, "+OK\r\n", one.Do("RL.BLOCK", "api", "k"))
	})
}

// TestOldPoliciesAreNoticed: the checks of the report show it.
func TestOldPoliciesAreNoticed(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		start := func() *inproc.Operated {
			return w.StartAdminWith(func(o *server.Options) { o.Clock, o.OpenStore = e.clock, e.open }, "--store", "redis://127.0.0.1:1")
		}
		is := func(o *inproc.Operated) report.Check {
			w.Advance(2 * time.Second)
			over := reportOf[report.Overview](t, o, "overview")
			return check(t, &over, report.CheckPolicies)
		}
		one := start()
		require.True(t, is(one).OK)
		e.setAway(true)
		e.clock.Advance(10 * time.Second)
		require.True(t, is(one).OK)
		e.clock.Advance(time.Second)
		now := is(one)
		require.False(t, now.OK)
		require.InDelta(t, 11, now.Value, 0)
		require.Equal(t, "not read yet", is(start()).Text)
		e.setAway(false)
		require.True(t, is(one).OK)
	})
}

// TestSeveralPoliciesOfAStore: a call under several policies is decided on the states of all of them, which the servers
// share, and counted by the server that has it.
func TestSeveralPoliciesOfAStore(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		one, other := startOver(w, e).Dial(), startOver(w, e).Dial()
		do := func(c *inproc.Client, words string) string { return c.Do(strings.Fields(words)...) }
		require.Equal(t, "+OK\r\n", do(one, "RL.POLICY SET api LIMITS SW 2 60 LOG"))
		require.Equal(t, "+OK\r\n", do(one, "RL.POLICY SET org LIMITS SW 3 60 LOG TB 9 1 60 BAN 2 60 600"))
		follows()
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), do(other, "RL.USE api k AND org o"))
		require.Equal(t, inproc.Five(0, 3, 1, -1, 120), do(one, "RL.USE org o"))
		require.Equal(t, "*2\r\n"+inproc.Five(0, 2, 0, -1, 180)+"*2\r\n*1\r\n"+inproc.Five(0, 2, 0, -1, 60)+"*2\r\n"+inproc.Five(0, 3, 0, -1, 60)+inproc.Five(0, 9, 6, -1, 180),
			do(other, "RL.USE api k AND org o WITHDETAILS"))
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), do(one, "RL.USE api k ANY api l"))
		require.Equal(t, "*2\r\n"+inproc.Five(0, 2, 0, -1, 60)+"*3\r\n*1\r\n"+inproc.Five(1, 2, 0, 60, 60)+"*1\r\n"+inproc.Five(0, 2, 0, -1, 60)+"*-1\r\n",
			do(other, "RL.USE api k ANY api l ANY org p WITHDETAILS"))
		require.Equal(t, inproc.Five(0, 2, 2, -1, 0), do(one, "RL.USE api m AND org p PEEK"))
		require.Equal(t, inproc.Five(1, 3, 0, 60, 180), do(one, "RL.USE api m AND org o"))
		require.Equal(t, inproc.Five(1, 3, 0, 600, 600), do(other, "RL.USE api m AND org o"), "the second denial begins a ban")
		require.Equal(t, inproc.Five(1, 3, 0, 600, 600), do(one, "RL.USE api m AND org o"))
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), do(other, "RL.USE api m"), "a denied call charges no policy")
		require.Equal(t, "-NOPOLICY No such policy 'none'\r\n", do(one, "RL.USE api m AND none x"))
		many := "RL.USE org 0"
		for i := range 32 {
			many += fmt.Sprint(" AND org ", i+1)
		}
		require.Equal(t, "-ERR the policies have too many clauses, at most 64 in all\r\n", do(one, many))
		require.Equal(t, "+OK\r\n", do(one, "MULTI"))
		for _, words := range []string{"RL.USE api x AND org x", "RL.USE api x AND org y", "RL.USE api x AND org z"} {
			require.Equal(t, "+QUEUED\r\n", do(one, words))
		}
		require.Equal(t, "*3\r\n"+inproc.Five(0, 2, 1, -1, 60)+inproc.Five(0, 2, 0, -1, 60)+inproc.Five(1, 2, 0, 60, 60), do(one, "EXEC"))
	})
}

// TestWhatPoliciesOfAStoreDoNotServe: such calls get an error and charge nothing.
func TestWhatPoliciesOfAStoreDoNotServe(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := startOver(w, newSharedStore(t)).Dial()
		require.Equal(t, "+OK\r\n", c.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60", "LOG"))
		for words, want := range map[string]string{
			"RL.POLICY RELOAD": "This server has no policy file: see the option policy-file",
		} {
			require.Equal(t, "-ERR "+want+"\r\n", c.Do(strings.Fields(words)...), words)
		}
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), c.Do("RL.USE", "api", "k"))
		require.Equal(t, "+OK\r\n", c.Do("MULTI"))
		for _, words := range []string{"RL.USE api k", "RL.USE api k BLOCK 1", "RL.USE api k"} {
			require.Equal(t, "+QUEUED\r\n", c.Do(strings.Fields(words)...))
		}
		denied := inproc.Five(1, 2, 0, 60, 60) // nothing waits in a transaction
		require.Equal(t, "*3\r\n"+inproc.Five(0, 2, 0, -1, 60)+denied+denied, c.Do("EXEC"))
	})
}

// TestServersAreToldOfChanges: a message makes other servers follow at once. Without messages they ask each second.
func TestServersAreToldOfChanges(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		one, other := startOver(w, e).Dial(), startOver(w, e).Dial()
		time.Sleep(300 * time.Millisecond) // between two questions
		require.Contains(t, other.Do("INFO", "store"), "store_policies_subscribed:1\r\nstore_policies_lag_ms:-1\r\n")
		require.Equal(t, "+OK\r\n", one.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60", "LOG"))
		time.Sleep(50 * time.Millisecond)
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), other.Do("RL.USE", "api", "k"))
		require.Contains(t, other.Do("INFO", "store"), "store_policies_lag_ms:0\r\n")

		e.shared.Channel.SetDown(true)
		require.Contains(t, other.Do("INFO", "store"), "store_policies_subscribed:0\r\n")
		time.Sleep(300 * time.Millisecond)
		require.Equal(t, "+OK\r\n", one.Do("RL.BLOCK", "api", "k", "EX", "100"))
		time.Sleep(50 * time.Millisecond)
		require.Equal(t, inproc.Five(0, 2, 0, -1, 60), other.Do("RL.USE", "api", "k"))
		follows()
		require.Equal(t, inproc.Five(1, 2, 0, 100, 100), other.Do("RL.USE", "api", "k"))

		require.Equal(t, ":1\r\n", one.Do("RL.UNBLOCK", "api", "k"))
		e.shared.Channel.SetDown(false) // what was missed is asked for at once
		time.Sleep(50 * time.Millisecond)
		require.Equal(t, inproc.Five(1, 2, 0, 60, 60), other.Do("RL.USE", "api", "k"))
	})
}

// TestManyMessagesCauseFewQuestions: another client of the store may send messages as fast as it can.
func TestManyMessagesCauseFewQuestions(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		startOver(w, e)
		time.Sleep(100 * time.Millisecond)
		before := e.evals.Load()
		for range 1000 {
			e.shared.Channel.Tell()
			time.Sleep(100 * time.Microsecond)
		}
		require.LessOrEqual(t, e.evals.Load()-before, int64(6), "in 100 ms, every 20 ms at most")
		require.GreaterOrEqual(t, e.evals.Load()-before, int64(4))
	})
}

// TestUrgentChangesWaitForAReplica: a block, the end of one and an exemption are answered when a replica of the store has
// them, or with an error after 500 ms. Other clients are served meanwhile.
func TestUrgentChangesWaitForAReplica(t *testing.T) {
	const unconfirmed = "-UNCONFIRMED The change is in force, but no replica of the store has confirmed it: a failover may lose it\r\n"
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		node := startOver(w, e)
		c := node.Dial()
		replicas := e.shared.Replicas
		require.Equal(t, "+OK\r\n", c.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60", "LOG"))
		urgent := []struct{ words, reply string }{
			{"RL.BLOCK api k", "+OK\r\n"},
			{"RL.UNBLOCK api k", ":1\r\n"},
			{"RL.UNBLOCK api k", ":0\r\n"},
			{"RL.EXEMPT api k", "+OK\r\n"},
			{"RL.UNEXEMPT api k", ":1\r\n"},
		}
		for _, n := range []int{0, 2} {
			replicas.Set(n, false)
			for _, u := range urgent {
				require.Equal(t, u.reply, c.Do(strings.Fields(u.words)...), u.words)
			}
		}
		require.Equal(t, 8, replicas.Asked(), "not for a change of nothing, nor for RL.POLICY SET")
		require.Contains(t, c.Do("INFO", "store"), "store_changes_unconfirmed:0\r\nstore_confirm_fault:\r\n")

		replicas.Set(1, true)
		for _, u := range urgent {
			start, want := time.Now(), unconfirmed
			if u.reply == ":0\r\n" {
				want = u.reply
			}
			require.Equal(t, want, c.Do(strings.Fields(u.words)...), u.words)
			require.LessOrEqual(t, time.Since(start), 510*time.Millisecond)
		}
		require.Contains(t, c.Do("INFO", "store"), "store_changes_unconfirmed:4\r\n")
		require.Equal(t, "+OK\r\n", c.Do("RL.OVERRIDE", "SET", "api", "x", "LIMITS", "SW", "5", "60"), "it does not wait")
		require.Contains(t, c.Do("RL.POLICY", "GET", "api"), "blocks\r\n*0\r\n$10\r\nexemptions\r\n*0\r\n", "all of it is done")

		// Those that wait at the same time wait together, and nothing waits for them.
		var all sync.WaitGroup
		start := time.Now()
		for i := range 20 {
			one := node.Dial()
			all.Go(func() {
				if said := one.Do("RL.BLOCK", "api", fmt.Sprint("b", i)); said != unconfirmed {
					t.Error(said)
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, inproc.Five(1, 2, 0, -1, -1), c.Do("RL.USE", "api", "b7"), "it is in force")
		require.Equal(t, "+OK\r\n", c.Do("RL.OVERRIDE", "SET", "api", "y", "LIMITS", "SW", "5", "60"))
		require.Less(t, time.Since(start), 200*time.Millisecond)
		all.Wait()
		require.LessOrEqual(t, time.Since(start), 1100*time.Millisecond)
	})
}

// TestUserOfTheStoreWithoutTheRightToWait: changes are answered as if there were no replica, and the log and INFO say so.
func TestUserOfTheStoreWithoutTheRightToWait(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		node := startOver(w, e)
		c := node.Dial()
		require.Equal(t, "+OK\r\n", c.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60"))
		e.shared.Replicas.Set(1, false)
		e.shared.Replicas.Fail(&engine.Error{Reason: "NOPERM", Text: "the user of the store may not run the command wait", NotDone: true})
		require.Equal(t, "+OK\r\n", c.Do("RL.BLOCK", "api", "k"))
		require.Equal(t, ":1\r\n", c.Do("RL.UNBLOCK", "api", "k"))
		require.Equal(t, 1, strings.Count(node.Log.String(), "the user of the store may not wait for replicas"))
		require.Contains(t, c.Do("INFO", "store"), "store_changes_unconfirmed:0\r\nstore_confirm_fault:NOPERM: the user of the store may not run the command wait\r\n")
		e.shared.Replicas.Fail(&engine.Error{Reason: engine.Timeout})
		require.Contains(t, c.Do("RL.BLOCK", "api", "k"), "-UNCONFIRMED ")
		e.shared.Replicas.Fail(nil)
		require.Equal(t, "+OK\r\n", c.Do("RL.BLOCK", "api", "k"))
		require.Contains(t, c.Do("INFO", "store"), "store_changes_unconfirmed:1\r\nstore_confirm_fault:\r\n")
	})
}

// TestReadyWithPolicies: a server that reaches the store is ready when it has read the policies, or a minute after its start.
func TestReadyWithPolicies(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		start := func() *inproc.Operated {
			return w.StartAdminWith(func(o *server.Options) { o.Clock, o.OpenStore = e.clock, e.open }, "--store", "redis://127.0.0.1:1")
		}
		is := func(o *inproc.Operated, status int, body string) {
			t.Helper()
			gotten, text := o.Get("/readyz", "", "")
			require.Equal(t, status, gotten)
			require.Equal(t, body, text)
		}
		e.setAway(true) // its nodes answer, but not the one with the policies
		late := start()
		time.Sleep(10 * time.Second)
		is(late, 503, "no-policies\n")
		e.setAway(false)
		follows()
		is(late, 200, "ok\n")
		e.setAway(true)
		follows()
		is(late, 200, "ok\n") // it decides by those that it has

		without := start()
		time.Sleep(50 * time.Second)
		is(without, 503, "no-policies\n")
		time.Sleep(20 * time.Second)
		is(without, 200, "ok\n")

		e.setAway(false)
		e.mu.Lock()
		e.forbids = true
		e.mu.Unlock()
		cut := start()
		time.Sleep(100 * time.Millisecond)
		is(cut, 200, "ok\n")
		c := cut.Dial()
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), c.Do("CL.THROTTLE", "k", "1", "1", "60"), "other limits go on")
		require.Contains(t, c.Do("INFO", "store"), "store_policies_fault:NOPERM: the user of the store may not run the command hscan\r\n")
	})
}

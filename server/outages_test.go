package server_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/report"
	"github.com/cellserver/cellserver/server"
)

// reportOf requests a report from the admin port of a server.
func reportOf[T any](t *testing.T, o *inproc.Operated, name string) (is T) {
	t.Helper()
	status, body := o.Get("/api/v1/"+name, "", "")
	require.Equal(t, 200, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), &is))
	return is
}

// named waits up to ten seconds, the required time, until the verdict is of a kind.
func named(t *testing.T, w *inproc.World, o *inproc.Operated, kind string, each func()) (over report.Overview) {
	t.Helper()
	w.Until("the verdict is "+kind, 500*time.Millisecond, 10*time.Second, func() bool {
		each()
		over = reportOf[report.Overview](t, o, "overview")
		return over.Verdict.Kind == kind
	})
	return over
}

// check returns the check of the overview with that ID.
func check(t *testing.T, o *report.Overview, id string) report.Check {
	t.Helper()
	for _, c := range o.Checks {
		if c.ID == id {
			return c
		}
	}
	require.Fail(t, "no check "+id)
	return report.Check{}
}

// TestCallsOfPoliciesAreCalls: a server that only gets RL.USE is not idle, and each call counts
// once, however many clauses the policy has: in the report, by group, by policy, and for RL.POLICY
// GET.
func TestCallsOfPoliciesAreCalls(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin()
		c := o.Dial()
		require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", "api", "LIMITS", "TB", "5", "1", "3600", "SW", "1000", "86400", "FIXED"))
		for range 100 {
			for range 4 {
				c.Do("RL.USE", "api", "acme")
			}
			w.Advance(time.Second)
		}
		over := reportOf[report.Overview](t, o, "overview")
		require.InDelta(t, 4, over.Now.CallsS, 0.5)
		require.InDelta(t, 1, over.Now.DeniedRatio, 0.01)
		require.NotEqual(t, report.Idle, over.Verdict.Kind)
		groups := reportOf[[]report.Group](t, o, "groups")
		require.Equal(t, report.Key("api"), groups[0].Group)
		require.InDelta(t, 4, groups[0].CallsS, 0.5, "clauses are not calls")

		series := o.Series()
		require.Equal(t, "5", series[`cellserver_policy_decisions_total{policy="api",result="allowed"}`])
		require.Equal(t, "395", series[`cellserver_policy_decisions_total{policy="api",result="denied"}`])
		require.Contains(t, c.Do("RL.POLICY", "GET", "api"), "$7\r\nallowed\r\n:5\r\n$6\r\ndenied\r\n:395\r\n")
	})
}

// TestEveryCallDeniedIsNoticed: the verdict changes at once, although there is no usual rate yet.
func TestEveryCallDeniedIsNoticed(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin()
		c := o.Dial()
		n := 0
		over := named(t, w, o, report.Denials, func() {
			for range 10 {
				n++
				c.Do("CL.THROTTLE", "k"+string(rune('a'+n%20)), "-1", "1", "3600")
			}
		})
		require.False(t, over.Verdict.Sick)
	})
}

// TestTooFewReplicasAreNoticed: every call is refused with an error, and counts as a call.
func TestTooFewReplicasAreNoticed(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin()
		c := o.Dial()
		over := reportOf[report.Overview](t, o, "overview")
		require.True(t, check(t, &over, report.CheckRole).OK)
		require.Equal(t, "primary", check(t, &over, report.CheckRole).Text)
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "min-replicas-to-write", "1"))
		over = named(t, w, o, report.Lacking, func() {
			require.Contains(t, c.Do("CL.THROTTLE", "k", "9", "1", "60"), "-NOREPLICAS")
		})
		require.True(t, over.Verdict.Sick)
		require.False(t, check(t, &over, report.CheckReplicas).OK)
		require.Positive(t, over.Now.CallsS)
		require.InDelta(t, 1, over.Now.ErrorRatio, 0)
		history := reportOf[report.History](t, o, "history")
		errors := int64(0)
		for _, n := range history.Errors {
			errors += n
		}
		require.Positive(t, errors)
		status, body := o.Get("/readyz", "", "")
		require.Equal(t, 503, status)
		require.Equal(t, "no-replicas\n", body)
		require.Equal(t, "1", o.Series()[`cellserver_replicas{state="wanted"}`])
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "min-replicas-to-write", "0"))
		status, body = o.Get("/readyz", "", "")
		require.Equal(t, 200, status, body)
	})
}

// TestDeadPrimaryIsNoticed: the replica reports it, and names the primary that it follows.
func TestDeadPrimaryIsNoticed(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary, replica := w.StartAdmin(), w.StartAdmin()
		replica.Follow(primary.Node)
		w.Advance(3 * time.Second)
		over := reportOf[report.Overview](t, replica, "overview")
		require.Contains(t, check(t, &over, report.CheckRole).Text, "replica of "+primary.Host)
		require.True(t, check(t, &over, report.CheckLink).OK)
		require.Equal(t, "1", replica.Series()["cellserver_primary_link_up"])
		over = reportOf[report.Overview](t, primary, "overview")
		require.True(t, check(t, &over, report.CheckAcks).OK, "%v", over.Checks)
		require.Equal(t, "1", primary.Series()[`cellserver_replicas{state="connected"}`])
		primary.Kill()
		over = named(t, w, replica, report.NoPrimary, func() {})
		require.True(t, over.Verdict.Sick)
		require.Contains(t, over.Verdict.Text, primary.Host)
		require.Equal(t, "0", replica.Series()["cellserver_primary_link_up"])
		require.Equal(t, "1", replica.Series()["cellserver_replica"])
	})
}

// brokenStore is a store whose only node may be down.
type brokenStore struct {
	server.RemoteStore
	down atomic.Bool
}

func (s *brokenStore) Info() remote.Info {
	node := remote.NodeInfo{Addr: "10.0.0.9:6379", State: "up"}
	if s.down.Load() {
		node.State, node.Reason = "down", "refused"
	}
	return remote.Info{Kind: "single", Nodes: []remote.NodeInfo{node}}
}

// TestStoreThatIsAwayIsNoticed: the verdict, /readyz and the metrics show it.
func TestStoreThatIsAwayIsNoticed(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		now := func() int64 { return time.Now().UnixNano() }
		start := func(options ...string) (*inproc.Operated, *brokenStore) {
			ks := keyspace.New(keyspace.Options{Databases: 1, Clock: clock.NewSystem(clock.Options{}.WithSources(now, now, now))})
			t.Cleanup(ks.Close)
			store := &brokenStore{RemoteStore: remotedouble.New(ks, 1)}
			return w.StartAdminWith(func(o *server.Options) {
				o.OpenStore = func(remote.Options) (server.RemoteStore, error) { return store, nil }
			}, append([]string{"--store", "redis://10.0.0.9"}, options...)...), store
		}
		for _, row := range []struct {
			options string
			ready   int
		}{
			{"--fail-policy closed", 503},
			{"--fail-policy open", 503},
			{"--ready-without-store yes --fail-policy closed", 503},
			{"--ready-without-store yes", 503},
			{"--ready-without-store yes --fail-policy open", 200},
			{"--ready-without-store yes --fail-policy local", 200},
		} {
			o, store := start(strings.Fields(row.options)...)
			w.Advance(2 * time.Second)
			over := reportOf[report.Overview](t, o, "overview")
			require.True(t, check(t, &over, report.CheckStore).OK, row.options)
			status, _ := o.Get("/readyz", "", "")
			require.Equal(t, 200, status, row.options)
			require.Equal(t, "1", o.Series()["cellserver_store_up"], row.options)
			store.down.Store(true)
			over = named(t, w, o, report.NoStore, func() {})
			require.True(t, over.Verdict.Sick, row.options)
			require.Contains(t, over.Verdict.Text, "10.0.0.9:6379 is down: refused", row.options)
			status, body := o.Get("/readyz", "", "")
			require.Equal(t, row.ready, status, row.options)
			if row.ready != 200 {
				require.Equal(t, "no-store\n", body)
			}
			require.Equal(t, "0", o.Series()["cellserver_store_up"], row.options)
			require.NoError(t, o.Stop())
		}
	})
}

// TestUsersHaveAFigureOfMemory: INFO shows the memory of users.
func TestUsersHaveAFigureOfMemory(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		before := c.InfoNumber("used_memory_users")
		for i := range 100 {
			require.Equal(t, inproc.OK, c.Do("ACL", "SETUSER", "user"+string(rune('a'+i%26))+strings.Repeat("x", i), "on", "~"+strings.Repeat("k", 100)))
		}
		require.Greater(t, c.InfoNumber("used_memory_users"), before+100*100)
	})
}

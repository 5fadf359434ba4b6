package server_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/remote/servers"
	"github.com/cellserver/cellserver/report"
	"github.com/cellserver/cellserver/server"
)

// summaryStore is a shared store whose scripts of summaries a test can watch and hold up.
type summaryStore struct {
	*sharedStore
	reads atomic.Int64 // of summaries
	slow  atomic.Int64 // the time that a read takes, in nanoseconds
	mute  atomic.Bool  // no summary is published
}

func (e *summaryStore) open(o remote.Options) (server.RemoteStore, error) {
	_, err := e.sharedStore.open(o)
	return e, err
}

func (e *summaryStore) Eval(ctx context.Context, script string, keys, args []string) (any, error) {
	switch name := servers.ScriptName(script); {
	case name == "summaries":
		e.reads.Add(1)
		time.Sleep(time.Duration(e.slow.Load()))
	case name == "publish" && e.mute.Load():
		return nil, errors.New("mute")
	}
	return e.sharedStore.Eval(ctx, script, keys, args)
}

// startAdminOver starts a server with an admin port over e.
func startAdminOver(w *inproc.World, e *summaryStore) *inproc.Operated {
	return w.StartAdminWith(func(o *server.Options) { o.Clock, o.OpenStore = e.clock, e.open }, "--store", "redis://127.0.0.1:1")
}

// publish has all servers publish what they have counted, by their own clock and that of the store.
func publish(w *inproc.World, e *summaryStore) {
	e.clock.Advance(servers.SummaryPeriod)
	w.Advance(servers.SummaryPeriod)
	follows()
}

// TestReportOfAllServers: RL.REPORT FLEET and the admin port add up what the servers of the store have counted, and say which
// they lack. They ask the store at most once in five seconds.
func TestReportOfAllServers(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := &summaryStore{sharedStore: newSharedStore(t)}
		one, two := startAdminOver(w, e), startAdminOver(w, e)
		follows()
		first := reportOf[report.Overview](t, one, "overview?fleet=all")
		require.Equal(t, 1, first.Fleet.Servers)
		require.Equal(t, 1, first.Fleet.Missing, "the other has published nothing yet")
		for range 30 {
			one.Dial().Do("SW.ALLOW", "api:busy", "1", "60")
			two.Dial().Do("SW.ALLOW", "api:busy", "1", "60")
			two.Dial().Do("SW.ALLOW", "web:other", "1", "60", "2")
		}
		publish(w, e)
		over := reportOf[report.Overview](t, one, "overview?fleet=all")
		require.Equal(t, 2, over.Fleet.Servers)
		require.Zero(t, over.Fleet.Missing+over.Fleet.Late)
		require.Empty(t, over.Fleet.Error)
		require.Len(t, over.Servers, 2)
		for _, s := range over.Servers {
			require.NotEmpty(t, s.Verdict)
		}
		keys := reportOf[report.FleetKeys](t, one, "keys?fleet=all")
		require.Equal(t, report.Key("api:busy"), keys.Keys[0].Key)
		require.Equal(t, 2, keys.Keys[0].Servers)
		require.Zero(t, keys.Keys[0].MissingS)

		names := map[report.Key]bool{}
		for _, g := range reportOf[report.FleetGroups](t, one, "groups?fleet=all").Groups {
			names[g.Group] = true
		}
		require.True(t, names["api"] && names["web"], "%v", names)
		require.Contains(t, one.Dial().Do("RL.REPORT", "KEYS", "FLEET"), `"fleet":{"servers":2,"missing":0`)

		before := e.reads.Load()
		for range 20 {
			reportOf[report.Overview](t, one, "overview?fleet=all")
			one.Dial().Do("RL.REPORT", "GROUPS", "FLEET")
		}
		require.LessOrEqual(t, e.reads.Load()-before, int64(1), "what was read is used for five seconds")

		e.setAway(true)
		publish(w, e)
		over = reportOf[report.Overview](t, one, "overview?fleet=all")
		require.NotEmpty(t, over.Fleet.Error)
		require.Equal(t, 1, over.Fleet.Servers)
		require.Equal(t, 1, over.Fleet.Missing)
		require.Contains(t, one.Dial().Do("RL.REPORT", "KEYS", "FLEET"), `"servers":1,"missing":1`)
	})
}

// TestReportsOfAllServersHoldUpNothing: a store that does not answer delays only the calls that ask it, and inside a
// transaction nothing is asked.
func TestReportsOfAllServersHoldUpNothing(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := &summaryStore{sharedStore: newSharedStore(t)}
		one := startAdminOver(w, e)
		startAdminOver(w, e)
		publish(w, e)
		e.slow.Store(int64(time.Second))
		began := time.Now()
		done := make(chan string, 8)
		for range cap(done) {
			c, other := one.Dial(), one.Dial()
			go func() { done <- c.Do("RL.REPORT", "GROUPS", "FLEET") }()
			other.Command("RL.TOP", "FLEET")
		}
		w.Settle()
		beside := one.Dial()
		require.Equal(t, "+PONG\r\n", beside.Do("PING"))
		require.Contains(t, beside.Do("RL.REPORT", "OVERVIEW"), `"verdict"`, "the commands in the background are not held up")
		require.Equal(t, inproc.OK, beside.Do("MULTI"))
		beside.Do("RL.REPORT", "GROUPS", "FLEET")
		beside.Do("RL.TOP", "FLEET")
		reply := beside.Do("EXEC")
		require.Contains(t, reply, "the figures of other servers were not read yet")
		require.Contains(t, reply, "-ERR FLEET asks the store for other servers, which is not possible inside a transaction")
		require.Equal(t, began, time.Now())
		for range cap(done) {
			require.True(t, strings.HasPrefix(<-done, "$"))
		}
		require.LessOrEqual(t, time.Since(began), 3*time.Second)
	})
}

// TestFiguresOfStuckServersAreLate: a server that is live and publishes nothing more is left out of the sum.
func TestFiguresOfStuckServersAreLate(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := &summaryStore{sharedStore: newSharedStore(t)}
		one := startAdminOver(w, e)
		two := startAdminOver(w, e)
		publish(w, e)
		require.Equal(t, 2, reportOf[report.Overview](t, one, "overview?fleet=all").Fleet.Servers)
		e.mute.Store(true)
		for _, want := range []struct{ servers, late, missing int }{{2, 0, 0}, {1, 1, 0}, {1, 0, 1}} {
			for range 5 {
				e.clock.Advance(time.Second)
				w.Advance(time.Second)
			}
			publish(w, e)
			is := reportOf[report.Overview](t, one, "overview?fleet=all").Fleet
			require.Equal(t, want.servers, is.Servers)
			require.Equal(t, want.late, is.Late)
			require.Equal(t, want.missing, is.Missing)
		}
		e.mute.Store(false)
		publish(w, e)
		require.Equal(t, 2, reportOf[report.Overview](t, two, "overview?fleet=all").Fleet.Servers)
	})
}

package server_test

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/remote/servers"
	"github.com/cellserver/cellserver/report"
	"github.com/cellserver/cellserver/server"
)

// put writes the record of a server, as a server of another release would.
func (e *sharedStore) put(id, record string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ms := int64(e.clock.Now()) / 1e6
	if e.shared.Hashes[servers.Key] == nil {
		e.shared.Hashes[servers.Key] = map[string]string{}
	}
	e.shared.Hashes[servers.Key][id] = fmt.Sprintf("%d %d %s", ms, ms+servers.Live.Milliseconds(), record)
}

// storeLines returns the lines of INFO store about servers.
func storeLines(c *inproc.Client) []string {
	return regexp.MustCompile(`store_server[^\r]*`).FindAllString(c.Do("INFO", "store"), -1)
}

// TestServersKnowOfEachOther: by their records in the store. INFO, the metrics and the report show them.
func TestServersKnowOfEachOther(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		start := func() *inproc.Operated {
			return w.StartAdminWith(func(o *server.Options) { o.Clock, o.OpenStore = e.clock, e.open }, "--store", "redis://127.0.0.1:1")
		}
		one, two := start(), start()
		c := one.Dial()
		follows()
		require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60"))
		follows()
		lines := storeLines(c)
		require.Equal(t, []string{"store_servers:2", "store_servers_fault:"}, lines[:2])
		version := regexp.MustCompile(`store_policies_version:([^\r]+)`).FindStringSubmatch(c.Do("INFO", "store"))[1]
		for i, line := range lines[2:] {
			require.Regexp(t, fmt.Sprintf(`^store_server%d:id=[0-9a-f]{40},address=\S+,version=%s,policies_version=%s,file=,level=1,tzdata=\d{4}\w*,age_ms=\d+$`, i, regexp.QuoteMeta(server.Version), version), line)
		}
		require.Equal(t, lines, storeLines(two.Dial()))
		require.Equal(t, "2", one.Series()["cellserver_store_servers"])
		require.Equal(t, "1", one.Series()["cellserver_store_policy_files"])
		over := reportOf[report.Overview](t, one, "overview")
		require.Len(t, over.Servers, 2)
		require.NotEqual(t, over.Servers[0].Self, over.Servers[1].Self)
		require.Equal(t, version, over.Servers[0].Policies)
		for _, id := range []string{report.CheckFiles, report.CheckCalendars} {
			require.True(t, check(t, &over, id).OK)
		}

		e.put("other", `{"release":"9","address":"10.0.0.9:6379","file":"cafe","level":2,"tzdata":"1999a"}`)
		e.put("bad\r\n", "what?")
		w.Advance(2 * time.Second)
		lines = storeLines(c)
		require.Equal(t, "store_servers:4", lines[0])
		require.Contains(t, strings.Join(lines, "\n"), ":id=other,address=10.0.0.9:6379,version=9,policies_version=,file=cafe,level=2,tzdata=1999a,age_ms=0")
		require.Contains(t, strings.Join(lines, "\n"), ":id=bad__,unreadable=1,age_ms=0")
		require.Equal(t, "2", one.Series()["cellserver_store_policy_files"])
		over = reportOf[report.Overview](t, one, "overview")
		require.Len(t, over.Servers, 4)
		for _, id := range []string{report.CheckFiles, report.CheckCalendars} {
			is := check(t, &over, id)
			require.False(t, is.OK)
			require.Equal(t, "not those of 10.0.0.9:6379", is.Text)
		}
		require.NoError(t, two.Stop())
		e.clock.Advance(servers.Live)
		follows()
		require.Equal(t, "store_servers:1", storeLines(c)[0], "one was stopped, the others have expired")
	})
}

// TestServersAreThoseSeenAtLast while the store is away.
func TestServersAreThoseSeenAtLast(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		c := startOver(w, e).Dial()
		startOver(w, e)
		follows()
		e.setAway(true)
		e.clock.Advance(time.Minute)
		follows()
		lines := storeLines(c)
		require.Equal(t, "store_servers:2", lines[0])
		require.NotEqual(t, "store_servers_fault:", lines[1])
		require.Contains(t, lines[2], ",age_ms=60000")
	})
}

// TestTopOfAllServers: RL.TOP FLEET adds up what the servers of the store have counted.
func TestTopOfAllServers(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		one, two := startOver(w, e).Dial(), startOver(w, e).Dial()
		follows()
		for range 3 {
			one.Do("SW.ALLOW", "busy", "1", "60")
			two.Do("SW.ALLOW", "busy", "1", "60")
		}
		two.Do("SW.ALLOW", "other", "1", "60", "2")
		require.Equal(t, "*2\r\n$4\r\nbusy\r\n:2\r\n", one.Do("RL.TOP"))
		require.Equal(t, "*2\r\n$4\r\nbusy\r\n:2\r\n", one.Do("RL.TOP", "FLEET"), "the other has published nothing yet")
		require.Contains(t, one.Do("RL.TOP", "FLEET", "WITHDETAILS"), "servers\r\n:1\r\n$7\r\nmissing\r\n:-1\r\n")
		w.Advance(servers.SummaryPeriod)
		follows()
		for _, c := range []*inproc.Client{one, two} {
			require.Equal(t, "*4\r\n$4\r\nbusy\r\n:5\r\n$5\r\nother\r\n:1\r\n", c.Do("RL.TOP", "FLEET"))
		}
		require.Regexp(t, `(?s)busy\r\n\$5\r\ncount\r\n:5\r\n.*servers\r\n:2\r\n\$7\r\nmissing\r\n:0\r\n.*other`, one.Do("RL.TOP", "FLEET", "WITHDETAILS"))
		e.setAway(true)
		require.Regexp(t, "^-UNAVAILABLE", one.Do("RL.TOP", "FLEET"))
		require.Regexp(t, "busy", one.Do("RL.TOP"))
	})
}

// TestSyncWaitsForAllServers: the reply comes when every live server has the change, and other clients are served
// meanwhile.
func TestSyncWaitsForAllServers(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		one, two := startOver(w, e), startOver(w, e)
		c, beside, other := one.Dial(), one.Dial(), two.Dial()
		follows()
		for i := range 20 {
			began := time.Now()
			require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", "api", "SYNC", "LIMITS", "SW", fmt.Sprint(10+i), "60"))
			require.LessOrEqual(t, time.Since(began), inForce)
			require.Contains(t, other.Do("RL.USE", "api", "k", "0"), fmt.Sprintf(":0\r\n:%d\r\n", 10+i))
			time.Sleep(137 * time.Millisecond)
		}

		e.put("stuck", `{"address":"10.0.0.9:6379","level":1}`)
		began, done := time.Now(), make(chan string, 1)
		go func() { done <- c.Do("RL.POLICY", "SET", "api", "COMMENT", "text", "SYNC", "LIMITS", "SW", "50", "60") }()
		time.Sleep(2 * time.Second)
		require.Empty(t, done)
		require.Equal(t, "+PONG\r\n", beside.Do("PING"))
		require.Contains(t, beside.Do("RL.USE", "api", "k", "0"), ":0\r\n:50\r\n")
		for range runtime.GOMAXPROCS(0) { // as many as run in the background at once
			one.Dial().Command("RL.POLICY", "SET", "more", "SYNC", "LIMITS", "SW", "1", "60")
		}
		w.Settle()
		require.Equal(t, inproc.OK, beside.Do("RL.OVERRIDE", "SET", "api", "y", "LIMITS", "SW", "9", "60"))
		require.Equal(t, inproc.OK, beside.Do("RL.BLOCK", "api", "x"))
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, "-ERR the change is in force here, but within 5 s it was not confirmed to be on 10.0.0.9:6379\r\n", <-done)
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

func TestSyncWhileTheStoreGoesAway(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		c := startOver(w, e).Dial()
		startOver(w, e)
		follows()
		done := make(chan string, 1)
		go func() { done <- c.Do("RL.POLICY", "SET", "api", "SYNC", "LIMITS", "SW", "50", "60") }()
		time.Sleep(20 * time.Millisecond)
		e.setAway(true)
		said := <-done
		require.Contains(t, said, "-ERR the change is in force here, but within 5 s it was not confirmed to be on ")
		require.Contains(t, said, ": starting")
		require.Contains(t, c.Do("RL.USE", "api", "k", "0"), ":0\r\n:50\r\n")
	})
}

// TestChangesThatAServerCannotReadAreRefused unless they are forced.
func TestChangesThatAServerCannotReadAreRefused(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		c := startOver(w, e).Dial()
		follows()
		require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "1", "60"))
		e.put("old", `{"release":"0.0.9","address":"10.0.0.9:6379","level":0}`)
		follows()
		for _, words := range []string{
			"RL.POLICY SET api LIMITS SW 2 60", "RL.OVERRIDE SET api k LIMITS SW 2 60", "RL.POLICY TRY api LIMITS SW 2 60",
		} {
			require.Equal(t, "-ERR server 10.0.0.9:6379 has release 0.0.9 with feature level 0 and cannot read this change, which needs level 1: upgrade it (RL.POLICY SET takes FORCE)\r\n",
				c.Do(strings.Fields(words)...), words)
		}
		for _, words := range []string{"RL.BLOCK api k", "RL.EXEMPT api l", "RL.BOOST api m 2 EX 5"} {
			require.Equal(t, inproc.OK, c.Do(strings.Fields(words)...), "%s cannot wait for an upgrade", words)
		}
		require.Contains(t, c.Do("RL.POLICY", "APPLY", "policies: {b: {limits: [SW 1 60]}}"), "-ERR server 10.0.0.9:6379 has")
		require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", "api", "FORCE", "LIMITS", "SW", "3", "60"))
		require.Contains(t, c.Do("RL.POLICY", "GET", "api"), "SW 3 60")
		require.Equal(t, ":1\r\n", c.Do("RL.POLICY", "DEL", "api"), "nothing has to be read")
		e.clock.Advance(servers.Live)
		follows()
		require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60"))
	})
}

// TestStoreServersAuto: fail-policy local divides by the number of live servers.
func TestStoreServersAuto(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		divisor := func() int {
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.options.Servers
		}
		auto := []string{"--store-servers", "auto"}
		one := startOver(w, e, auto...)
		require.Equal(t, 1, divisor())
		two := startOver(w, e, auto...)
		startOver(w, e, auto...)
		follows()
		require.Equal(t, 3, divisor())
		e.setAway(true)
		e.clock.Advance(time.Minute)
		follows()
		require.Equal(t, 3, divisor(), "those seen at last")
		e.setAway(false)
		follows()
		require.Equal(t, 3, divisor())
		require.NoError(t, two.Stop())
		e.clock.Advance(servers.Live)
		follows()
		follows()
		require.Equal(t, 2, divisor())
		c := one.Dial()
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "store-servers", "7"))
		require.Equal(t, 7, divisor())
		require.Contains(t, c.Do("CONFIG", "GET", "store-servers"), "$1\r\n7\r\n")
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "store-servers", "auto"))
		require.Equal(t, 2, divisor())
	})
}

package server_test

import (
	"fmt"
	"regexp"
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

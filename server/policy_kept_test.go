package server_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hour is a policy with a limit that nothing refills while a test lasts.
const hour = "RL.POLICY SET api LIMITS SW 10 3600 FIXED ANCHOR FIRST"

// say sends the words of a command and returns the bytes of its reply.
func (c *client) say(words string) string {
	c.t.Helper()
	return c.do(strings.Fields(words)...)
}

// set has commands answered with OK.
func (c *client) set(commands ...string) {
	c.t.Helper()
	for _, words := range commands {
		require.Equal(c.t, okReply, c.say(words), words)
	}
}

// awaitRewrite waits until the log was rewritten and the files of before are gone: whoever copies
// the directory must find each file that it has listed.
func awaitRewrite(c *client) {
	c.t.Helper()
	eventually(c.t, "rewritten", func() bool { return c.info("aof_base_size") != "0" && c.info("aof_rewrite_in_progress") == "0" })
}

// temporary sets an entry of each kind that ends in ten seconds, each for a key of its own.
func temporary(c *client) {
	c.t.Helper()
	c.set(hour,
		"RL.BOOST api boosted 2.5 EX 10", "RL.BLOCK api blocked* EX 10 REASON abuse", "RL.EXEMPT api exempt EX 10",
		"RL.OVERRIDE SET api over* EX 10 COMMENT large LIMITS SW 77 3600 FIXED ANCHOR FIRST")
}

// hasTemporary wants what temporary has set to be in force, or to be over.
func hasTemporary(c *client, inForce bool, left int64) {
	c.t.Helper()
	never := five(1, 10, 10, -1, 0) // 1000 units of ten
	want := [4]string{never, never, never, never}
	if inForce {
		want = [4]string{five(1, 25, 25, -1, 0), five(1, 10, 0, left, left), five(0, 10, 10, -1, 0), five(1, 77, 77, -1, 0)}
	}
	for i, key := range []string{"boosted", "blocked1", "exempt", "over1"} {
		require.Equal(c.t, want[i], c.do("RL.USE", "api", key, "1000"), key)
	}
}

// TestEntriesEndToTheNanosecond: boosts, blocks, exemptions and overrides with EX are in force a
// nanosecond before their end, and at that instant no longer, in a server that goes on and in
// one that has been started again on the log, on a rewritten log or on a snapshot.
func TestEntriesEndToTheNanosecond(t *testing.T) {
	const lasts = 10 * time.Second
	for name, again := range map[string]func(t *testing.T, f *fixture, dir string) (left string){
		"goes on": nil,
		"killed":  func(t *testing.T, _ *fixture, dir string) string { return crashed(t, dir) },
		"stopped": func(_ *testing.T, f *fixture, dir string) string { f.end(); return dir },
		"rewritten": func(t *testing.T, f *fixture, dir string) string {
			c := f.dial()
			require.Contains(t, c.do("BGREWRITEAOF"), "started")
			awaitRewrite(c)
			return crashed(t, dir)
		},
		"saved": func(t *testing.T, f *fixture, dir string) string {
			require.Equal(t, okReply, f.dial().do("SAVE"))
			return crashed(t, dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, log := t.TempDir(), "yes"
			if name == "saved" {
				log = "no"
			}
			f := start(t, "goroutine", "--dir", dir, "--appendonly", log)
			temporary(f.dial())
			end := epoch.Add(lasts)
			if again == nil {
				c := f.dial()
				hasTemporary(c, true, 10)
				f.clock.Set(end - 1)
				hasTemporary(c, true, 1)
				f.clock.Set(end)
				hasTemporary(c, false, 0)
				return
			}
			left := again(t, f, dir)
			copied := t.TempDir()
			require.NoError(t, os.CopyFS(copied, os.DirFS(left)))
			before := after(t, left, end-1)
			hasTemporary(before.dial(), true, 1)
			before.clock.Set(end)
			hasTemporary(before.dial(), false, 0)
			over := after(t, copied, end)
			hasTemporary(over.dial(), false, 0)
			require.Equal(t, 5, strings.Count(over.dial().do("RL.CHANGES"), bulk("policy")))
		})
	}
}

// TestFlushesLeavePolicies: FLUSHALL and FLUSHDB take the state of keys, and no policy.
func TestFlushesLeavePolicies(t *testing.T) {
	dir := t.TempDir()
	f := start(t, "goroutine", "--dir", dir, "--appendonly", "yes")
	c := f.dial()
	temporary(c)
	changes := c.say("RL.CHANGES COUNT 100")
	for _, flush := range []string{"FLUSHALL", "FLUSHDB", "FLUSHALL ASYNC", "FLUSHDB SYNC"} {
		require.Equal(t, five(0, 10, 7, -1, 3600), c.say("RL.USE api k 3"))
		require.Equal(t, ":1\r\n", c.do("DBSIZE"))
		c.set(flush)
		require.Equal(t, ":0\r\n", c.do("DBSIZE"))
		hasTemporary(c, true, 10)
		require.Equal(t, changes, c.say("RL.CHANGES COUNT 100"))
	}
	kept := after(t, crashed(t, dir), epoch).dial()
	hasTemporary(kept, true, 10)
	require.Equal(t, changes, kept.say("RL.CHANGES COUNT 100"))
}

// TestPoliciesAreOutOfReach: no command for keys shows, counts or changes the records.
func TestPoliciesAreOutOfReach(t *testing.T) {
	f := start(t, "goroutine")
	c := f.dial()
	c.set(hour)
	require.Equal(t, ":0\r\n", c.do("DBSIZE"))
	require.Equal(t, "*0\r\n", c.do("KEYS", "*"))
	require.Equal(t, "*2\r\n$1\r\n0\r\n*0\r\n", c.do("SCAN", "0"))
	for _, db := range []string{"16", "-1", "255", "256", "65535", "65536", "4294967295", "9223372036854775807"} {
		for _, words := range [][]string{{"SELECT", db}, {"SWAPDB", "0", db}, {"MOVE", "main/api", db}, {"COPY", "main/api", "x", "DB", db}} {
			reply := c.do(words...)
			require.True(t, reply[0] == '-' || reply == ":0\r\n", "%q: %s", words, reply)
		}
	}
	require.NotContains(t, c.do("INFO", "keyspace"), "db")
	require.Equal(t, array(bulk("api")), c.say("RL.POLICY LIST"))
}

// TestChangesAreBounded: RL.CHANGES has the latest 10,000, also after a restart, and the log
// and the store have no more.
func TestChangesAreBounded(t *testing.T) {
	dir := t.TempDir()
	f := start(t, "goroutine", "--dir", dir, "--appendonly", "yes", "--appendfsync", "no")
	c := f.dial()
	c.set(hour)
	const many, more = 10_000, 250
	for range (many + more) / 50 {
		var all []byte
		for range 50 {
			all = append(all, frame("RL.BLOCK", "api", "k", "EX", "9")...)
		}
		c.send(string(all))
		for range 50 {
			c.expect(okReply)
		}
	}
	look := func(c *client) string {
		all := c.do("RL.CHANGES", "COUNT", "1000000")
		require.True(t, strings.HasPrefix(all, "*10000\r\n"), all[:20])
		require.Equal(t, many, strings.Count(all, bulk("id")))
		require.Contains(t, all[:100], ":10251\r\n")
		require.NotContains(t, all, bulk("id")+":251\r\n")
		require.Contains(t, all, bulk("id")+":252\r\n")
		return all
	}
	all := look(c)
	f.Keyspace().Sweep(1 << 20)
	records := 0
	for key := range f.state() {
		if strings.Contains(key, "/change/") {
			records++
		}
	}
	require.Equal(t, many, records)
	require.Equal(t, all, look(after(t, crashed(t, dir), epoch).dial()))
	c.say("BGREWRITEAOF")
	awaitRewrite(c)
	left := crashed(t, dir)
	again := after(t, left, epoch)
	require.Equal(t, all, look(again.dial()))
	again.dial().set("RL.BLOCK api other EX 9")
	require.Contains(t, again.dial().do("RL.CHANGES", "COUNT", "1"), ":10252\r\n")
}

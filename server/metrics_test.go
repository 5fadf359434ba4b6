package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// floodGroups calls limiters with n keys, each of a group of its own but for those of hot.
func (o *operated) floodGroups(n int) {
	o.t.Helper()
	const depth = 1000
	c := o.dial()
	for from := 0; from < n; from += depth {
		var pipeline strings.Builder
		for i := from; i < from+depth; i++ {
			group := fmt.Sprintf("tenant%d", i)
			if i%10 == 0 {
				group = fmt.Sprintf("hot%d", i/10%300)
			}
			key := fmt.Sprintf("%s:%d", group, i)
			fmt.Fprintf(&pipeline, "*5\r\n$11\r\nCL.THROTTLE\r\n$%d\r\n%s\r\n$2\r\n10\r\n$1\r\n1\r\n$2\r\n60\r\n", len(key), key)
		}
		go c.send(pipeline.String())
		for range depth {
			c.reply()
		}
	}
}

// TestSeriesAreBoundedWhateverTheKeys: a million keys of nearly a million groups, of every
// shape, make no more than 500 series.
func TestSeriesAreBoundedWhateverTheKeys(t *testing.T) {
	n := 1_000_000
	if testing.Short() || raceDetector {
		n = 50_000
	}
	o := operate(t)
	c := o.dial()
	for _, name := range []string{"\xff\xfe", `quo"te`, "line\nend", "\x00", "other", "(none)", strings.Repeat("long", 1000), ""} {
		for range 20 {
			c.command("CL.THROTTLE", name+":key", "10", "1", "60")
			require.True(t, strings.HasPrefix(c.reply(), "*5"))
		}
	}
	o.floodGroups(n)
	const keys = `cellserver_keys{db="0"}`
	// A scrape waits for the keyspace a moment only, and then shows what that said before.
	eventually(t, "the keyspace has been asked", func() bool { return o.series()[keys] == fmt.Sprint(float64(n+8)) })
	all := o.series()
	require.LessOrEqual(t, len(all), 500)
	require.Greater(t, len(all), 300, "all groups that there may be have series")
	require.Contains(t, all, `cellserver_group_decisions_total{group="\"\\xff\\xfe\"",result="allowed"}`)
	require.Equal(t, fmt.Sprint(float64(n+8)), all[keys])
}

// TestPoliciesAreGroupsOfKeys: the clauses of RL.USE count for the group that the policy is.
func TestPoliciesAreGroupsOfKeys(t *testing.T) {
	o := operate(t)
	c := o.dial()
	c.set("RL.POLICY SET api LIMITS TB 10 1 3600 SW 99 3600")
	for range 20 { // a group of a few calls counts as other
		require.True(t, strings.HasPrefix(c.say("RL.USE api acme"), "*5"))
	}
	all := o.series()
	for _, result := range []string{"allowed", "denied"} {
		require.Contains(t, all, `cellserver_group_decisions_total{group="api",result="`+result+`"}`)
	}
}

// TestTheRunningScriptIsSeen while it keeps the others waiting.
func TestTheRunningScriptIsSeen(t *testing.T) {
	o := operate(t, "--busy-reply-threshold", "1")
	c := o.dial()
	c.command("EVAL", "while true do end", "0")
	eventually(t, "it is seen", func() bool {
		seconds := o.series()["cellserver_script_running_seconds"]
		return seconds != "0" && seconds != ""
	})
	status, _ := o.get("/healthz", "", "")
	require.Equal(t, 200, status, "its loops answer all the same")
	eventually(t, "its timer runs", func() bool { return o.clock.Timers() == 1 })
	o.clock.Advance(time.Second) // beyond the threshold
	other := o.dial()
	eventually(t, "it is killed", func() bool { return other.do("SCRIPT", "KILL") == "+OK\r\n" })
	c.reply()
	eventually(t, "it is gone", func() bool { return o.series()["cellserver_script_running_seconds"] == "0" })
}

// TestUsersAreCounted: the first fifty by name.
func TestUsersAreCounted(t *testing.T) {
	o := operate(t)
	c := o.dial()
	for i := range 60 {
		c.do("ACL", "SETUSER", fmt.Sprint("user", i), "on", "nopass", "+@all", "~*")
		c.do("AUTH", fmt.Sprint("user", i), "x")
		c.do("PING")
	}
	users, sum := 0, 0
	for name, value := range o.series() {
		if strings.HasPrefix(name, "cellserver_user_commands_total") {
			var n int
			_, err := fmt.Sscan(value, &n)
			require.NoError(t, err)
			sum, users = sum+n, users+1
		}
	}
	require.Equal(t, 180, sum, "every command is counted once")
	require.Equal(t, 51, users)
}

// BenchmarkScrapeOfAMillionKeys is one answer of /metrics by a server with so many keys.
func BenchmarkScrapeOfAMillionKeys(b *testing.B) {
	o := operate(b)
	o.floodGroups(1_000_000)
	b.ResetTimer()
	for b.Loop() {
		began := time.Now()
		o.series()
		b.ReportMetric(float64(time.Since(began).Microseconds()), "last-µs")
	}
}

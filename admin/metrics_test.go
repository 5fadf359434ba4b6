package admin_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// floodGroups calls limiters with n keys, each of a group of its own but for those of hot.
func floodGroups(c *inproc.Client, n int) {
	const depth = 1000
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
		go c.Send(pipeline.String())
		for range depth {
			c.Reply()
		}
	}
}

// TestSeriesAreBoundedWhateverTheKeys: very many keys of nearly as many groups, of every shape, make
// no more than 640 series.
func TestSeriesAreBoundedWhateverTheKeys(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := 200_000
		if testing.Short() || effort.RaceDetector {
			n = 50_000
		}
		o := w.StartAdmin()
		c := o.Dial()
		for _, name := range []string{"\xff\xfe", `quo"te`, "line\nend", "\x00", "other", "(none)", strings.Repeat("long", 1000), ""} {
			for range 20 {
				c.Command("CL.THROTTLE", name+":key", "10", "1", "60")
				require.True(t, strings.HasPrefix(c.Reply(), "*5"))
			}
		}
		floodGroups(c, n)
		const keys = `cellserver_keys{db="0"}`
		all := o.Series()
		require.LessOrEqual(t, len(all), 640)
		require.Greater(t, len(all), 300, "all groups that there may be have series")
		require.Contains(t, all, `cellserver_group_decisions_total{group="\"\\xff\\xfe\"",result="allowed"}`)
		require.Equal(t, fmt.Sprint(float64(n+8)), all[keys])
	})
}

// TestPoliciesAreGroupsOfKeys: the clauses of RL.USE count for the group that the policy is.
func TestPoliciesAreGroupsOfKeys(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin()
		c := o.Dial()
		require.Equal(t, inproc.OK, c.Do(strings.Fields("RL.POLICY SET api LIMITS TB 10 1 3600 SW 99 3600")...))
		for range 20 { // a group of a few calls counts as other
			require.True(t, strings.HasPrefix(c.Do("RL.USE", "api", "acme"), "*5"))
		}
		all := o.Series()
		for _, result := range []string{"allowed", "denied"} {
			require.Contains(t, all, `cellserver_group_decisions_total{group="api",result="`+result+`"}`)
		}
	})
}

// TestTheRunningScriptIsSeen while it keeps the others waiting.
func TestTheRunningScriptIsSeen(t *testing.T) {
	s, get := inproc.StepAdmin(t, "--busy-reply-threshold", "1")
	seconds := func() string {
		status, body := get("/metrics")
		require.Equal(t, 200, status, body)
		return regexp.MustCompile(`(?m)^cellserver_script_running_seconds (\S+)$`).FindStringSubmatch(body)[1]
	}
	c, other := s.Dial(), s.Dial()
	c.Command("EVAL", "while true do end", "0")
	s.Clock.AwaitTimers(1) // it runs
	require.NotEqual(t, "0", seconds())
	status, _ := get("/healthz")
	require.Equal(t, 200, status, "its loops answer all the same")
	s.Clock.Advance(time.Second) // beyond the threshold
	require.Equal(t, inproc.OK, other.Do("SCRIPT", "KILL"))
	c.Reply()
	require.Equal(t, ":0\r\n", other.Do("EXISTS", "k"), "nothing runs beside it that keeps others waiting")
	require.Equal(t, "0", seconds())
}

// TestUsersAreCounted: the first fifty by name.
func TestUsersAreCounted(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin()
		c := o.Dial()
		for i := range 60 {
			c.Do("ACL", "SETUSER", fmt.Sprint("user", i), "on", "nopass", "+@all", "~*")
			c.Do("AUTH", fmt.Sprint("user", i), "x")
			c.Do("PING")
		}
		users, sum := 0, 0
		for name, value := range o.Series() {
			if strings.HasPrefix(name, "cellserver_user_commands_total") {
				var n int
				_, err := fmt.Sscan(value, &n)
				require.NoError(t, err)
				sum, users = sum+n, users+1
			}
		}
		require.Equal(t, 180, sum, "every command is counted once")
		require.Equal(t, 51, users)
	})
}

// BenchmarkScrapeOfAMillionKeys measures one reply of /metrics by a server with a million keys.
func BenchmarkScrapeOfAMillionKeys(b *testing.B) {
	s, get := inproc.StepAdmin(b)
	floodGroups(s.Dial(), 1_000_000)
	b.ResetTimer()
	for b.Loop() {
		began := time.Now()
		get("/metrics")
		b.ReportMetric(float64(time.Since(began).Microseconds()), "last-µs")
	}
}

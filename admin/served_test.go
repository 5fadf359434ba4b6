package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

func TestMetricsAreServed(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin("--appendonly", "yes")
		c := o.Dial()
		c.Send(strings.Repeat("CL.THROTTLE api:1 10 1 60\r\n", 3))
		for range 3 {
			c.Reply()
		}
		for range 20 {
			c.Do("CL.THROTTLE", "api:1", "4", "1", "60")
		}
		c.Do("CL.THROTTLE", "api:1")
		c.Do("GET", "no", "arguments")
		c.Do("AUTH", "nobody", "x")
		c.Do("ACL", "SETUSER", "ann", "on", "nopass", "+ping", "+auth")
		c.Do("AUTH", "ann", "x")
		c.Do("GET", "k")
		// A scrape waits for the keyspace a moment only, and then shows what that said before.
		w.Settle()
		require.Equal(t, "1", o.Series()[`cellserver_keys{db="0"}`])
		got := o.Series()
		for name, want := range map[string]string{
			`cellserver_build_info{go_version="GO",redis_version="7.2.4",revision="00000000",version="0.1.0"}`: "1",
			`cellserver_clients{state="normal"}`:                               "1",
			`cellserver_commands_total{command="cl.throttle"}`:                 "24",
			`cellserver_connections_total{result="accepted"}`:                  "1",
			`cellserver_connections_total{result="refused"}`:                   "0",
			`cellserver_decisions_total{command="cl.throttle",result="error"}`: "1",
			`cellserver_auth_failures_total`:                                   "1",
			`cellserver_acl_denied_total{reason="command"}`:                    "1",
			`cellserver_command_failures_total{code="WRONGPASS"}`:              "1",
			`cellserver_command_failures_total{code="NOPERM"}`:                 "1",
			`cellserver_user_commands_total{user="default"}`:                   "26",
			`cellserver_keys{db="0"}`:                                          "1",
			`cellserver_persistence_ok`:                                        "1",
			`cellserver_loading`:                                               "0",
			`cellserver_script_running_seconds`:                                "0",
			`cellserver_clock_step_seconds`:                                    "0",
		} {
			if strings.Contains(name, `"GO"`) {
				continue
			}
			require.Equal(t, want, got[name], name)
		}
		require.NotContains(t, got, `cellserver_commands_total{command="get"}`, "it was never run")
		require.Contains(t, got, `cellserver_command_duration_seconds_bucket{class="fast",le="0.001048576"}`)
		require.NotContains(t, got, `cellserver_command_duration_seconds_count{class="script"}`, "there was none")
		require.Contains(t, got, `cellserver_memory_bytes{kind="rss"}`)
		require.Contains(t, got, `cellserver_retry_after_seconds_bucket{le="60"}`)
		var allowed, denied int
		_, err := fmt.Sscan(got[`cellserver_decisions_total{command="cl.throttle",result="allowed"}`]+" "+got[`cellserver_decisions_total{command="cl.throttle",result="denied"}`], &allowed, &denied)
		require.NoError(t, err)
		require.Equal(t, 23, allowed+denied)
		require.Positive(t, denied)
	})
}

// TestCountersOfLimitersBeginAt0: a rate over them does not miss the first call.
func TestCountersOfLimitersBeginAt0(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		got := w.StartAdmin().Series()
		for _, name := range []string{"cl.throttle", "sw.allow", "tb.acquire", "cc.acquire", "rl.use", "rl.multi"} {
			for _, result := range []string{"allowed", "denied", "error"} {
				require.Equal(t, "0", got[`cellserver_decisions_total{command="`+name+`",result="`+result+`"}`], name)
			}
		}
	})
}

func TestProbesTellHowTheServerIs(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin()
		for _, path := range []string{"/healthz", "/readyz"} {
			status, body := o.Get(path, "", "")
			require.Equal(t, 200, status)
			require.Equal(t, "ok\n", body)
		}
		o.Engine().SetLoading(true)
		status, body := o.Get("/readyz", "", "")
		require.Equal(t, 503, status)
		require.Equal(t, "loading\n", body)
		status, _ = o.Get("/healthz", "", "")
		require.Equal(t, 200, status, "its loops answer")
		o.Engine().SetLoading(false)
		o.Engine().Drain()
		status, body = o.Get("/readyz", "", "")
		require.Equal(t, 503, status)
		require.Equal(t, "draining\n", body)
	})
}

func TestThePageIsForUsersWhoMayCallInfo(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin()
		c := o.Dial()
		status, body := o.Get("/", "", "")
		require.Equal(t, 200, status, "default needs no password on this machine")
		require.Contains(t, body, "<html")
		c.Do("ACL", "SETUSER", "ann", "on", ">a", "+info")
		c.Do("ACL", "SETUSER", "bob", "on", ">b", "+get")
		c.Do("CONFIG", "SET", "requirepass", "secret")
		for _, q := range []struct {
			user, password string
			status         int
		}{{"", "", 401}, {"default", "secret", 200}, {"default", "wrong", 401}, {"ann", "a", 200}, {"bob", "b", 403}} {
			status, _ := o.Get("/", q.user, q.password)
			require.Equal(t, q.status, status, "%+v", q)
		}
		require.Contains(t, c.Do("ACL", "LOG"), "HTTP")
		require.Equal(t, "1", o.Series()[`cellserver_auth_failures_total`])
	})
}

package admin_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestTheAdminPortShowsNoSecrets: passwords that come in by it, by the Redis protocol or by the
// configuration are in none of its answers, nor in metrics, logs, INFO, SLOWLOG and MONITOR. Keys
// are in none of those that need no user.
func TestTheAdminPortShowsNoSecrets(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const password, key = "canary-file", "group:canary-key"
		o := w.StartAdmin("--requirepass", password, "--admin-actions", "yes", "--admin-pprof", "yes", "--loglevel", "debug", "--slowlog-log-slower-than", "0")
		c, monitor := o.Dial(), o.Dial()
		require.Equal(t, inproc.OK, c.Do("AUTH", password))
		require.Equal(t, inproc.OK, monitor.Do("AUTH", password))
		require.Equal(t, inproc.OK, monitor.Do("MONITOR"))
		var shown, open strings.Builder // to users, and without one
		get := func(path, user, password string) {
			_, body := o.Get(path, user, password)
			shown.WriteString(body)
		}
		run := func(args ...string) string {
			header := inproc.RunHeaders()
			header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("default:"+password)))
			_, body, err := o.Post(header, `{"args":["`+strings.Join(args, `","`)+`"]}`)
			require.NoError(t, err)
			return body
		}
		for range 40 {
			c.Do("CL.THROTTLE", key, "0", "1", "60")
		}
		for _, user := range []string{"default", "nobody", "canary-user"} {
			get("/", user, "canary-guess")
			get("/metrics", user, "canary-guess")
		}
		for _, args := range [][]string{
			{"ACL", "SETUSER", "app", "on", ">canary-acl", "+get"},
			{"ACL", "SETUSER", "app", ">canary-acl2", "+nosuch"},
			{"ACL", "SETUSER", "app", "(canary-acl3"},
			{"AUTH", "canary-auth"},
			{"HELLO", "3", "AUTH", "app", "canary-hello"},
			{"CONFIG", "SET", "tls-key-file-pass", "canary-pass"},
			{"CONFIG", "SET", "requirepass", "canary-set", "maxclients", "x"},
			{"CONFIG", "SET", "masterauth", "canary-master"},
		} {
			run(args...)
			c.Do(args...)
			if args[0] == "HELLO" {
				c.Do("HELLO", "2")
			}
		}
		for _, args := range []string{"ACL LIST", "ACL GETUSER app", "SLOWLOG GET -1", "INFO everything", "CLIENT LIST", "ACL LOG"} {
			shown.WriteString(run(strings.Fields(args)...))
		}
		for _, path := range []string{
			"/", "/api/v1/overview", "/api/v1/history", "/api/v1/keys", "/api/v1/groups", "/api/v1/changes", "/api/v1/clients", "/api/v1/slowlog",
			"/api/v1/key?key=a", "/api/v1/nosuch", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2",
		} {
			get(path, "default", password)
		}
		for _, command := range []string{"INFO everything", "CLIENT LIST", "LATENCY LATEST", "MEMORY STATS", "RL.REPORT CHANGES"} {
			open.WriteString(c.Do(strings.Fields(command)...))
		}
		for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
			_, body := o.Get(path, "", "")
			open.WriteString(body)
		}
		require.Contains(t, open.String(), `group_decisions_total{group="group",result="denied"}`)
		for _, q := range []string{"ACL LOG", "SLOWLOG GET -1", "ACL LIST", "RL.TOP"} {
			shown.WriteString(c.Do(strings.Fields(q)...))
		}
		c.Do("ECHO", "the-end-of-it")
		for line := ""; !strings.Contains(line, "the-end-of-it"); shown.WriteString(line) {
			var err error
			line, err = monitor.R.ReadString('\n')
			require.NoError(t, err)
		}
		seen := strings.ReplaceAll(shown.String(), key, "")
		require.Contains(t, seen, "(redacted)")
		seen = strings.ReplaceAll(seen, "canary-user", "") // ACL LOG shows it
		for what, text := range map[string]string{"shown": seen, "open": strings.ReplaceAll(open.String(), "canary-user", ""), "log": o.Log.String()} {
			at := max(0, strings.Index(text, "canary")-200)
			require.NotContains(t, text, "canary", "%s, near %s", what, fmt.Sprintf("%q", text[at:min(at+400, len(text))]))
		}
	})
}

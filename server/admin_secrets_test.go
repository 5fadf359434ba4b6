package server_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheAdminPortShowsNoSecrets: passwords that come in by it, by the Redis protocol or by the
// configuration are in none of its answers, nor in metrics, logs, INFO, SLOWLOG and MONITOR. Keys
// are in none of those that everybody may see.
func TestTheAdminPortShowsNoSecrets(t *testing.T) {
	const password, key = "canary-file", "group:canary-key"
	o := operate(t, "--requirepass", password, "--admin-actions", "yes", "--admin-pprof", "yes", "--loglevel", "debug", "--slowlog-log-slower-than", "0")
	c, monitor := o.dial(), o.dial()
	require.Equal(t, okReply, c.do("AUTH", password))
	require.Equal(t, okReply, monitor.do("AUTH", password))
	require.Equal(t, okReply, monitor.do("MONITOR"))
	var shown, open strings.Builder // to users, and to everybody
	get := func(path, user, password string) {
		_, body := o.get(path, user, password)
		shown.WriteString(body)
	}
	run := func(args ...string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+o.AdminAddr().String()+"/api/v1/run",
			strings.NewReader(`{"args":["`+strings.Join(args, `","`)+`"]}`))
		require.NoError(t, err)
		r.Header = asking.Clone()
		r.SetBasicAuth("default", password)
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return string(body)
	}
	for range 40 {
		c.do("CL.THROTTLE", key, "0", "1", "60")
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
		c.do(args...)
		if args[0] == "HELLO" {
			c.do("HELLO", "2")
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
		open.WriteString(c.do(strings.Fields(command)...))
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		_, body := o.get(path, "", "")
		open.WriteString(body)
	}
	require.Contains(t, open.String(), `group_decisions_total{group="group",result="denied"}`)
	for _, q := range []string{"ACL LOG", "SLOWLOG GET -1", "ACL LIST", "RL.TOP"} {
		shown.WriteString(c.do(strings.Fields(q)...))
	}
	c.do("ECHO", "the-end-of-it")
	for line := ""; !strings.Contains(line, "the-end-of-it"); shown.WriteString(line) {
		var err error
		line, err = monitor.r.ReadString('\n')
		require.NoError(t, err)
	}
	seen := strings.ReplaceAll(shown.String(), key, "")
	require.Contains(t, seen, "(redacted)")
	seen = strings.ReplaceAll(seen, "canary-user", "") // of whom ACL LOG tells
	for what, text := range map[string]string{"shown": seen, "open": strings.ReplaceAll(open.String(), "canary-user", ""), "log": o.log.String()} {
		at := max(0, strings.Index(text, "canary")-200)
		require.NotContains(t, text, "canary", "%s, near %s", what, fmt.Sprintf("%q", text[at:min(at+400, len(text))]))
	}
}

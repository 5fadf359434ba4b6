package server_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/server"
)

// operated is a server with an admin port.
type operated struct {
	*server.Server
	t     testing.TB
	clock *clocktest.Clock
	log   *logBuffer
}

// operate runs a server with an admin port until the test ends.
func operate(t testing.TB, flags ...string) *operated {
	t.Helper()
	o, _ := operateOn(t, t.TempDir(), flags...)
	return o
}

// operateOn is operate with the files of dir. end ends it.
func operateOn(t testing.TB, dir string, flags ...string) (o *operated, end func()) {
	t.Helper()
	return operateWith(t, dir, nil, flags...)
}

// operateWith is operateOn on a disk of the caller's.
func operateWith(t testing.TB, dir string, disk persistence.FS, flags ...string) (o *operated, end func()) {
	t.Helper()
	c, err := config.Load(append([]string{"--io-threads", "2", "--dir", dir}, flags...), nil)
	require.NoError(t, err)
	var listeners [2]net.Listener
	for i := range listeners {
		listeners[i], err = net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
	}
	clock, log := clocktest.New(epoch), &logBuffer{}
	s, err := server.New(c, server.Options{Clock: clock, Listeners: listeners[:1], AdminListeners: listeners[1:], FS: disk, Log: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	end = sync.OnceFunc(func() {
		s.Stop()
		require.NoError(t, <-done)
	})
	t.Cleanup(end)
	eventually(t, "loaded", func() bool { return !s.Engine().Loading() })
	return &operated{s, t, clock, log}, end
}

func (o *operated) dial() *client { return dial(o.t, "tcp", o.Addr().String()) }

// get asks the admin port.
func (o *operated) get(path, user, password string) (status int, body string) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+o.AdminAddr().String()+path, nil)
	require.NoError(o.t, err)
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	require.NoError(o.t, err)
	defer func() { require.NoError(o.t, answer.Body.Close()) }()
	all, err := io.ReadAll(answer.Body)
	require.NoError(o.t, err)
	return answer.StatusCode, string(all)
}

// series returns the metrics by name and labels.
func (o *operated) series() map[string]string {
	o.t.Helper()
	status, body := o.get("/metrics", "", "")
	require.Equal(o.t, 200, status, body)
	all := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^(cellserver_\S*?(?:\{.*\})?) (\S+)$`).FindAllStringSubmatch(body, -1) {
		require.NotContains(o.t, all, m[1])
		all[m[1]] = m[2]
	}
	return all
}

func TestMetricsAreServed(t *testing.T) {
	o := operate(t, "--appendonly", "yes")
	c := o.dial()
	c.send(strings.Repeat("CL.THROTTLE api:1 10 1 60\r\n", 3))
	for range 3 {
		c.reply()
	}
	for range 20 {
		c.do("CL.THROTTLE", "api:1", "4", "1", "60")
	}
	c.do("CL.THROTTLE", "api:1")
	c.do("GET", "no", "arguments")
	c.do("AUTH", "nobody", "x")
	c.do("ACL", "SETUSER", "ann", "on", "nopass", "+ping", "+auth")
	c.do("AUTH", "ann", "x")
	c.do("GET", "k")
	// A scrape waits for the keyspace a moment only, and then shows what that said before.
	eventually(t, "the keyspace has been asked", func() bool { return o.series()[`cellserver_keys{db="0"}`] == "1" })
	got := o.series()
	for name, want := range map[string]string{
		`cellserver_build_info{go_version="GO",redis_version="7.2.4",version="0.1.0"}`: "1",
		`cellserver_clients{state="normal"}`:                                           "1",
		`cellserver_commands_total{command="cl.throttle"}`:                             "24",
		`cellserver_connections_total{result="accepted"}`:                              "1",
		`cellserver_connections_total{result="refused"}`:                               "0",
		`cellserver_decisions_total{command="cl.throttle",result="error"}`:             "1",
		`cellserver_auth_failures_total`:                                               "1",
		`cellserver_acl_denied_total{reason="command"}`:                                "1",
		`cellserver_command_failures_total{code="WRONGPASS"}`:                          "1",
		`cellserver_command_failures_total{code="NOPERM"}`:                             "1",
		`cellserver_user_commands_total{user="default"}`:                               "26",
		`cellserver_keys{db="0"}`:                                                      "1",
		`cellserver_persistence_ok`:                                                    "1",
		`cellserver_loading`:                                                           "0",
		`cellserver_script_running_seconds`:                                            "0",
		`cellserver_clock_step_seconds`:                                                "0",
	} {
		if strings.Contains(name, `"GO"`) {
			continue
		}
		require.Equal(t, want, got[name], name)
	}
	require.NotContains(t, got, `cellserver_commands_total{command="get"}`, "it was never run")
	require.Contains(t, got, `cellserver_command_duration_seconds_bucket{class="fast",le="0.001048576"}`)
	require.NotContains(t, got, `cellserver_command_duration_seconds_count{class="script"}`, "there was none")
	require.Contains(t, got, `cellserver_loop_busy_ratio{loop="1"}`)
	require.Contains(t, got, `cellserver_memory_bytes{kind="rss"}`)
	require.Contains(t, got, `cellserver_retry_after_seconds_bucket{le="60"}`)
	var allowed, denied int
	_, err := fmt.Sscan(got[`cellserver_decisions_total{command="cl.throttle",result="allowed"}`]+" "+got[`cellserver_decisions_total{command="cl.throttle",result="denied"}`], &allowed, &denied)
	require.NoError(t, err)
	require.Equal(t, 23, allowed+denied)
	require.Positive(t, denied)
}

func TestProbesTellHowTheServerIs(t *testing.T) {
	o := operate(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		status, body := o.get(path, "", "")
		require.Equal(t, 200, status)
		require.Equal(t, "ok\n", body)
	}
	o.Engine().SetLoading(true)
	status, body := o.get("/readyz", "", "")
	require.Equal(t, 503, status)
	require.Equal(t, "loading\n", body)
	status, _ = o.get("/healthz", "", "")
	require.Equal(t, 200, status, "its loops answer")
	o.Engine().SetLoading(false)
	o.Engine().Drain()
	status, body = o.get("/readyz", "", "")
	require.Equal(t, 503, status)
	require.Equal(t, "draining\n", body)
}

func TestThePageIsForUsersWhoMayCallInfo(t *testing.T) {
	o := operate(t)
	c := o.dial()
	status, body := o.get("/", "", "")
	require.Equal(t, 200, status, "default needs no password on this machine")
	require.Contains(t, body, "<html")
	c.do("ACL", "SETUSER", "ann", "on", ">a", "+info")
	c.do("ACL", "SETUSER", "bob", "on", ">b", "+get")
	c.do("CONFIG", "SET", "requirepass", "secret")
	for _, q := range []struct {
		user, password string
		status         int
	}{{"", "", 401}, {"default", "secret", 200}, {"default", "wrong", 401}, {"ann", "a", 200}, {"bob", "b", 403}} {
		status, _ := o.get("/", q.user, q.password)
		require.Equal(t, q.status, status, "%+v", q)
	}
	require.Contains(t, c.do("ACL", "LOG"), "HTTP")
	require.Equal(t, "1", o.series()[`cellserver_auth_failures_total`])
}

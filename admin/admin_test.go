package admin_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/admin"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands"
)

// says answers with a word and the name of the user that asks.
func says(word string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if u := admin.User(r.Context()); u != nil {
			name = u.Name
		}
		_, _ = w.Write([]byte(word + " for " + name))
	})
}

// newConfig returns a port with everything on it, and users: default needs a password, ann
// may call INFO, bob may not.
func newConfig(t *testing.T) admin.Config {
	t.Helper()
	table := command.NewTable(commands.Groups())
	users := acl.NewUsers(table)
	for name, rules := range map[string][]string{
		"default": {"resetpass", ">secret"}, "ann": {"on", ">a", "+info"}, "bob": {"on", ">b", "+get"}, "off": {"off", ">o", "+@all"},
		"root": {"on", ">r", "allcommands", "allkeys", "allchannels"},
	} {
		_, _, err := users.Set(name, rules)
		require.NoError(t, err)
	}
	return admin.Config{
		Users: users,
		May: func(u *acl.User, name string) bool {
			if u.Rules().Unrestricted {
				return true
			}
			cmd := table.Find([]byte(name))
			return cmd != nil && cmd.Refused(u.Rules(), [][]byte{[]byte(name)}, true).Reason == acl.DeniedNothing
		},
		Metrics: says("metrics"), API: says("api"), Page: says("page"), AnonymousMetrics: true,
	}
}

// request is one request and its expected reply.
type request struct {
	method, path, user, password string
	host                         string
	header                       map[string]string
	status                       int
	body                         string // a part of the reply
}

func (q request) check(t *testing.T, h http.Handler) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(context.Background(), cmpOr(q.method, http.MethodGet), q.path, strings.NewReader("{}"))
	r.Host = cmpOr(q.host, "127.0.0.1:9121")
	if q.user != "" || q.password != "" {
		r.SetBasicAuth(q.user, q.password)
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, q.status, w.Code, "%+v: %s", q, w.Body)
	require.Contains(t, w.Body.String(), q.body, "%+v", q)
	return w.Result()
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func TestOnlyUsersWhoMayCallInfoAreServed(t *testing.T) {
	h := admin.New(newConfig(t)).Handler()
	for _, q := range []request{
		{path: "/metrics", status: 200, body: "metrics for nobody"},
		{path: "/healthz", status: 200, body: "ok"},
		{path: "/readyz", status: 200, body: "ok"},
		{path: "/", status: 401},
		{path: "/api/v1/overview", status: 401},
		{path: "/", user: "ann", password: "a", status: 200, body: "page for ann"},
		{path: "/", user: "ann", password: "b", status: 401},
		{path: "/", user: "ann", password: "", status: 401},
		{path: "/", user: "nobody", password: "a", status: 401},
		{path: "/", user: "off", password: "o", status: 401},
		{path: "/", user: "bob", password: "b", status: 403, body: "no permissions to run the 'info' command"},
		{path: "/api/v1/overview", user: "bob", password: "b", status: 403},
		{path: "/api/v1/overview", user: "ann", password: "a", status: 200, body: "api for ann"},
		{path: "/", user: "default", password: "secret", status: 200, body: "page for default"},
		{path: "/", user: "", password: "secret", status: 200, body: "page for default"},
		{path: "/debug/pprof/", user: "root", password: "r", status: 200, body: "page for root"}, // it is off
	} {
		answer := q.check(t, h)
		require.Equal(t, q.status == 401, answer.Header.Get("WWW-Authenticate") != "")
		require.Contains(t, answer.Header.Get("Content-Security-Policy"), "default-src 'self'")
		require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
	}
}

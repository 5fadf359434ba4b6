//go:build real

package envoy_test

import (
	"bufio"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
)

// trick is a request with which a client could try to choose the key, the cost, or the status of its check.
type trick struct {
	path   string
	fields []string
}

// tricks are appended parameters, paths, and all header fields that gateways use for the original request.
func tricks() []trick {
	all := []trick{
		{path: "/?key=x&hits=0&deny=200"},
		{path: "/a?key=x&hits=0&deny=200"},
		{path: "/&key=x&hits=0&deny=200"},
		{path: "/key=x&hits=0&deny=200"},
		{path: "/%26key=x%26hits=0"},
		{path: "/..%2fkey=x"},
		{path: "/../key=x&hits=0"},
		{path: "/%2e%2e/%2e%2e/other/key=x"},
		{path: "//other/key=x"},
		{path: "/%00"},
		{path: "/;key=x"},
		{path: "/%23?%23"},
		{path: "/?" + "hits=-1000000"},
		{path: "/v1/check/api/key=x"},
		{path: "/v1/use"},
	}
	for _, name := range []string{
		"X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server", "X-Forwarded-Prefix",
		"X-Forwarded-Path", "X-Forwarded-For", "X-Original-Uri", "X-Original-Url", "X-Original-Method", "X-Original-Host", "X-Original-Forwarded-For",
		"X-Envoy-Original-Path", "X-Envoy-External-Address", "X-Envoy-Internal", "X-Envoy-Original-Method", "X-Real-Ip", "X-Rewrite-Url", "Forwarded",
		"X-Http-Method-Override", "True-Client-Ip", "Cf-Connecting-Ip",
	} {
		for _, value := range []string{"/other?key=x&hits=0&deny=200", "203.0.113.9", envoyAddr, "HEAD"} {
			all = append(all, trick{path: "/", fields: []string{name, value}})
		}
	}
	return append(all,
		trick{path: "/", fields: []string{"X-Forwarded-For", "203.0.113.1", "X-Forwarded-For", "203.0.113.2, " + envoyAddr}},
		trick{path: "/", fields: []string{"Authorization", "Basic Zm9vOmJhcg=="}}, trick{path: "/", fields: []string{"Hits", "0", "Deny", "200", "Key", "x"}})
}

// keysOf returns the keys of a policy that have a state.
func (g *gateway) keysOf(policy string) (keys []any) {
	g.t.Helper()
	return g.server.Do("KEYS", policy+":*").([]any)
}

// testChecks: the checks of envoy.yaml limit each address, and nothing that a client sends changes that.
func (m *machine) testChecks(t *testing.T) {
	g := m.start(t, change{"timeout: 0.25s", "timeout: 60s"})
	g.server.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", 2, year, "FIXED")
	for i, want := range []int{200, 200, 429} {
		a := g.must(g.checked, "/")
		require.Equal(t, want, a.status, "request %d", i)
		require.Equal(t, `"api";q=2;w=31536000`, a.header.Get("RateLimit-Policy"))
		require.Contains(t, a.header.Get("RateLimit"), `"api";r=`+[]string{"1", "0", "0"}[i]+";t=")
		if want == 429 {
			require.NotEmpty(t, a.header.Get("Retry-After"))
			require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
			require.Contains(t, a.body, `"violated-policies":["api"]`)
		} else {
			require.Equal(t, "the page\n", a.body)
		}
	}
	require.Len(t, g.keysOf("api"), 1)
	for _, try := range tricks() {
		require.Equal(t, 429, g.must(g.checked, try.path, try.fields...).status, "%+v", try)
	}

	// Each of them counts one for the one key.
	const many = 1_000_000
	g.server.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", many, year, "FIXED")
	before := g.oneUsed()
	for i, try := range tricks() {
		require.Equal(t, 200, g.must(g.checked, try.path, try.fields...).status, "%+v", try)
		require.Equal(t, before+int64(i)+1, g.oneUsed(), "%+v", try)
	}
	require.Len(t, g.keysOf("api"), 1)
	key := g.keysOf("api")[0].(string)[len("api:"):]
	g.server.Do("RL.BLOCK", "api", key)
	for _, try := range tricks() {
		require.Equal(t, 429, g.must(g.checked, try.path, try.fields...).status, "%+v", try)
	}
	require.Contains(t, g.must(g.checked, "/").body, "#abnormal-usage-detected")

	// Request targets that no client of Go sends get past no check.
	for _, line := range []string{"OPTIONS * HTTP/1.1", "GET http://any?key=x HTTP/1.1", "GET ?key=x HTTP/1.1", "GET &deny=200 HTTP/1.1", "CONNECT any:80 HTTP/1.1"} {
		require.NotEqual(t, 200, g.raw(line), line)
	}
	require.Len(t, g.keysOf("api"), 1)
}

// oneUsed returns what the only key of the policy api has used.
func (g *gateway) oneUsed() int64 {
	g.t.Helper()
	keys := g.keysOf("api")
	require.Len(g.t, keys, 1)
	return g.used("api", keys[0].(string)[len("api:"):])
}

// raw sends a request with the given first line, and returns the status of the answer.
func (g *gateway) raw(line string) int {
	g.t.Helper()
	c, err := net.Dial("tcp", g.checked)
	require.NoError(g.t, err)
	defer c.Close()
	require.NoError(g.t, c.SetDeadline(time.Now().Add(storetest.Patience)))
	_, err = c.Write([]byte(line + "\r\nHost: any\r\nConnection: close\r\n\r\n"))
	require.NoError(g.t, err)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(g.t, err)
	defer r.Body.Close()
	return r.StatusCode
}

// testChecksOfHeaderFields: the operator chooses the key, here by a header field, the method and the path, and the status
// of a denial.
func (m *machine) testChecksOfHeaderFields(t *testing.T) {
	g := m.start(t, change{"timeout: 0.25s", "timeout: 60s"},
		change{"path_prefix: /v1/check/api/key=ip/", "path_prefix: /v1/check/api/key=header:x-tenant&key=method&key=path&deny=403"},
		change{"[{exact: x-forwarded-for}]", "[{exact: x-tenant}]"})
	g.server.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", 2, year, "FIXED")
	for _, want := range []int{200, 200, 403} {
		require.Equal(t, want, g.must(g.checked, "/a?x=1", "X-Tenant", "acme", "X-Forwarded-Uri", "/b", "X-Forwarded-Method", "PUT").status)
	}
	require.Equal(t, 200, g.must(g.checked, "/b?x=1", "X-Tenant", "acme").status)
	require.Equal(t, 200, g.must(g.checked, "/a", "X-Tenant", "other").status)
	require.ElementsMatch(t, []any{"api:acme|GET|/a", "api:acme|GET|/b", "api:other|GET|/a"}, g.keysOf("api"))
	g.server.Do("DEL", "api:acme|GET|/b", "api:other|GET|/a")
	require.Equal(t, 200, g.must(g.checked, "/a", "X-Tenant", "new", "X-Tenant", "acme").status)
	require.ElementsMatch(t, []any{"api:acme|GET|/a", "api:new,acme|GET|/a"}, g.keysOf("api"), "Envoy joins a field that is there twice")
}

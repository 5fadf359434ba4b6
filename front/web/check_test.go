package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/front/headers"
	"github.com/cellserver/cellserver/front/web"
	"github.com/cellserver/cellserver/resp"
)

func TestAChecksAnswer(t *testing.T) {
	p := newPort(t, nil)
	p.fed.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60", "FIXED", "ANCHOR", "FIRST")
	for i := range 2 {
		w := p.ask(t, "GET", "/v1/check/api/key=ip", "", nil)
		require.Equal(t, 200, w.Code)
		require.Empty(t, w.Body.String())
		require.Equal(t, `"api";q=2;w=60`, field(w, "RateLimit-Policy"))
		require.Equal(t, fmt.Sprintf(`"api";r=%d;t=60`, 1-i), field(w, "RateLimit"))
		require.Empty(t, field(w, "Retry-After"))
	}
	w := p.ask(t, "POST", "/v1/check/api/key=ip&deny=403/", "", nil)
	require.Equal(t, 403, w.Code)
	require.Equal(t, `"api";r=0;t=60`, field(w, "RateLimit"))
	require.Equal(t, "60", field(w, "Retry-After"))
	require.JSONEq(t, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":403,"violated-policies":["api"]}`, w.Body.String())
	w = p.ask(t, "GET", "/v1/check/api/key=ip", "", nil)
	require.Equal(t, 429, w.Code)
	w = p.ask(t, "GET", "/v1/check/api/key=ip&hits=0", "", nil)
	require.Equal(t, 200, w.Code, "it only looks")
	p.blocked["127.0.0.1"] = true
	w = p.ask(t, "GET", "/v1/check/api/key=ip", "", nil)
	require.Contains(t, w.Body.String(), "abnormal-usage-detected")
	require.Equal(t, []string{"default"}, p.users[:1])
	require.Equal(t, "RL.USE api 127.0.0.1 1 MS WITHDETAILS", p.asked[0])
}

func TestTheStyleOfAnswers(t *testing.T) {
	for i, name := range headers.Styles {
		p := newPort(t, func(c *web.Config) { c.Style = headers.Style(i) })
		p.fed.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60", "FIXED", "ANCHOR", "FIRST")
		w := p.ask(t, "GET", "/v1/check/api/key=ip", "", nil)
		require.Equal(t, name == "draft" || name == "both", field(w, "RateLimit") != "", name)
		require.Equal(t, name == "x" || name == "both", field(w, "X-RateLimit-Reset") == "60", name)
	}
}

func TestPathsOfChecks(t *testing.T) {
	p := newPort(t, nil)
	p.fed.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2000", "60", "FIXED", "ANCHOR", "FIRST")
	for path, status := range map[string]int{
		"/v1/check/api/key=x":             200,
		"/v1/check/a%70i/key=x":           200,
		"/v1/check/api/key=x/":            200,
		"/v1/check/api/key=x/a/../../b":   200,
		"/v1/check/api/key=x//v1/use":     200,
		"/v1/check/unknown/key=x":         404,
		"/v1/check/api/key=x%2F../use":    200, // a slash in a part, and another behind
		"/v1/check/api/":                  400,
		"/v1/check/api":                   400,
		"/v1/check/":                      400,
		"/v1/check//key=x":                400,
		"/v1/check/../check/api/key=x":    400,
		"/v1/check":                       404,
		"/v1/checks/api/key=x":            404,
		"/V1/check/api/key=x":             404,
		"//v1/check/api/key=x":            404,
		"/v1/%63heck/api/key=x":           404,
		"/":                               404,
		"/metrics":                        404,
		"/v1/use/":                        404,
		"http://other/v1/check/api/key=x": 200,
	} {
		w := p.ask(t, "GET", path, "", nil)
		require.Equal(t, status, w.Code, "%s: %s", path, w.Body.String())
	}
	for _, method := range []string{"HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"} {
		require.Equal(t, 200, p.ask(t, method, "/v1/check/api/key=x", "", nil).Code, method)
	}
}

// TestAClientChoosesNothing checks that what a client adds to a request changes neither key, cost and status of
// a check nor the user that asks.
func TestAClientChoosesNothing(t *testing.T) {
	every := func(r *http.Request) {
		for _, name := range []string{
			"X-Forwarded-For", "X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Prefix",
			"X-Original-Uri", "X-Original-Url", "X-Original-Method", "X-Original-Host", "X-Rewrite-Url", "X-Real-Ip", "Forwarded", "X-Http-Method-Override",
			"X-Envoy-Original-Path", "Deny", "Hits", "Key",
		} {
			r.Header.Add(name, "1.1.1.1")
		}
		r.SetBasicAuth("ann", "wrong")
	}
	for _, g := range []web.Gateway{web.NoGateway, web.Nginx, web.Traefik, web.Caddy, web.Envoy} {
		p := newPort(t, behindProxy(g))
		p.fed.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "1", "60", "FIXED", "ANCHOR", "FIRST")
		peer := func(r *http.Request) { r.RemoteAddr = "192.0.2.1:5" }
		require.Equal(t, 200, p.ask(t, "GET", "/v1/check/api/key=ip&key=header:X-Key", "", peer).Code)
		for _, more := range []string{"", "/", "/a", "/key=x&hits=0&deny=200", "/%26hits=0", "/../../../v1/check/other/key=y"} {
			for _, query := range []string{"", "?key=x&hits=0&deny=200", "?%26", "?deny=200/key=x"} {
				w := p.ask(t, "POST", "/v1/check/api/key=ip&key=header:X-Key"+more+query, `{"key":"x","hits":0,"deny":200}`, func(r *http.Request) {
					peer(r)
					every(r)
				})
				require.Equal(t, 429, w.Code, more+query)
			}
		}
		for _, command := range p.asked {
			require.Equal(t, "RL.USE api 192.0.2.1| 1 MS WITHDETAILS", command)
		}
		for _, user := range p.users {
			require.Equal(t, "default", user)
		}
	}
}

func TestUsersOfChecks(t *testing.T) {
	p := newPort(t, nil)
	p.fed.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "9", "60", "FIXED", "ANCHOR", "FIRST")
	require.Equal(t, 403, p.ask(t, "GET", "/v1/check/api/key=x&hits=-1", "", nil).Code)
	require.Equal(t, 403, p.ask(t, "GET", "/v1/check/api/key=x&hits=-1", "", basic("ann", "a")).Code)
	require.Equal(t, 200, p.ask(t, "GET", "/v1/check/api/key=x&hits=-1", "", certificate("ann")).Code)
	require.Equal(t, []string{"ann"}, p.users)
	p = newPort(t, func(c *web.Config) { c.User = func() (string, bool) { return "", false } })
	w := p.ask(t, "GET", "/v1/check/api/key=x", "", nil)
	require.Equal(t, 401, w.Code)
	require.Contains(t, field(w, "Www-Authenticate"), "Basic")
	require.Empty(t, p.asked)
}

// TestErrorsOfChecks checks the status for each error reply, and that a check shows no more than its first word.
func TestErrorsOfChecks(t *testing.T) {
	for reply, status := range map[string]int{
		"NOPOLICY No such policy 'api'":                           404,
		"NOPERM User app has no permissions":                      403,
		"NOAUTH Authentication required.":                         401,
		"NOADDRESS 'acme' is no IP address":                       418, // the client's key: a denial
		"WRONGTYPE Operation against a key":                       418,
		"ERR the policy has a CC clause, which needs MEMBER":      400,
		"ERR internal error":                                      500,
		"LOADING Redis is loading the dataset in memory":          503,
		"OOM command not allowed when used memory > 'maxmemory'.": 503,
		"READONLY You can't write against a read only replica.":   503,
		"UNAVAILABLE the store does not answer":                   503,
		"MISCONF Errors writing to the AOF file":                  503,
		"NOREPLICAS Not enough good replicas to write.":           503,
		"BUSY Redis is busy running a script.":                    503,
		"SOMETHING new":                                           503,
	} {
		p := newPort(t, nil)
		p.reply = "-" + reply + "\r\n"
		w := p.ask(t, "GET", "/v1/check/api/key=x&deny=418", "", nil)
		require.Equal(t, status, w.Code, reply)
		word, rest, _ := strings.Cut(reply, " ")
		require.Contains(t, w.Body.String(), word)
		require.NotContains(t, w.Body.String(), rest)
		require.Empty(t, field(w, "RateLimit"))
	}
	for refusal, status := range map[resp.Error]int{
		"DENIED Redis is running in protected mode": 403, "ERR max number of clients reached": 503, "NOAUTH the user does not exist": 401,
	} {
		p := newPort(t, nil)
		p.refusal = refusal
		require.Equal(t, status, p.ask(t, "GET", "/v1/check/api/key=x", "", nil).Code)
	}
}

// TestRepliesThatNoCallHas checks that a reply of another form is no decision.
func TestRepliesThatNoCallHas(t *testing.T) {
	const five = "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:0\r\n"
	for _, reply := range []string{
		"+OK\r\n", ":1\r\n", "*2\r\n", "*2\r\n" + five, "*2\r\n" + five + "*0\r\n", "*2\r\n" + five + "*17\r\n", "*2\r\n" + five + "*-1\r\n",
		"*2\r\n" + five + "*1\r\n" + five + "+more\r\n", "*2\r\n*4\r\n:0\r\n:1\r\n:0\r\n:-1\r\n*0\r\n", five, "", "\r\n", "*2\r\n" + five + "*1\r\n*5\r\n:x",
	} {
		p := newPort(t, nil)
		p.reply = reply
		if reply == "" {
			p.reply = "?"
		}
		require.Equal(t, 503, p.ask(t, "GET", "/v1/check/api/key=x", "", nil).Code, "%q", reply)
	}
}

// TestLimitsThatHaveChanged checks that an answer has no wrong window if the policy has changed since the decision.
func TestLimitsThatHaveChanged(t *testing.T) {
	p := newPort(t, nil)
	p.fed.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60", "FIXED", "ANCHOR", "FIRST", "TB", "5", "1", "1")
	require.Equal(t, `"api";q=2, "api#2";q=5`, field(p.ask(t, "GET", "/v1/check/api/key=x", "", nil), "RateLimit-Policy"))
	p.limits = append(p.limits, web.Limit{Concurrent: true})
	require.Equal(t, `"api";q=2;w=60, "api#2";q=5;qu="concurrent-requests"`, field(p.ask(t, "GET", "/v1/check/api/key=x", "", nil), "RateLimit-Policy"))
	p.limits = []web.Limit{{Unlimited: true}}
	p.fed.Do("RL.POLICY", "SET", "api", "LIMITS", "NONE")
	require.Empty(t, field(p.ask(t, "GET", "/v1/check/api/key=x", "", nil), "RateLimit"))
	p.fed.Do("RL.POLICY", "SET", "unknown", "LIMITS", "NONE")
	require.Empty(t, field(p.ask(t, "GET", "/v1/check/unknown/key=x", "", nil), "RateLimit"))
}

func TestLongKeys(t *testing.T) {
	p := newPort(t, nil)
	p.fed.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60", "FIXED", "ANCHOR", "FIRST")
	require.Equal(t, 200, p.ask(t, "GET", "/v1/check/api/key=header:X-Key&deny=403", "", set("X-Key", strings.Repeat("x", 16000))).Code)
	require.Equal(t, 403, p.ask(t, "GET", "/v1/check/api/key=header:X-Key&deny=403", "", set("X-Key", strings.Repeat("x", 16001))).Code)
	require.Len(t, p.asked, 1)
}

// TestLongHeaders: a client must not get by with a header that is too long.
func TestLongHeaders(t *testing.T) {
	p := newPort(t, nil)
	p.fed.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60", "FIXED", "ANCHOR", "FIRST")
	long := set("X-Other", strings.Repeat("x", web.MaxHeader))
	require.Equal(t, 403, p.ask(t, "GET", "/v1/check/api/key=a&deny=403", "", long).Code)
	require.Equal(t, 403, p.ask(t, "GET", "/v1/check/api/key=a&deny=403/"+strings.Repeat("x", web.MaxHeader), "", nil).Code)
	require.Equal(t, 431, p.use(t, `{"policy":"api","key":"a"}`, long).Code)
	require.Empty(t, p.asked)
}

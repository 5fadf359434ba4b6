package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/front/descriptors"
	"github.com/cellserver/cellserver/front/web"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
	"github.com/cellserver/cellserver/rls/wire"
)

// shopLimits is a limits file whose namespace has a character that paths escape.
const shopLimits = `
- {namespace: a/b, name: user, id: u1, max_value: 3, seconds: 60, conditions: ["has(descriptors[0].user)"], variables: ["descriptors[0].user"]}
- {namespace: a/b, max_value: 100, seconds: 3600, conditions: [], variables: []}`

// limitsPort returns a port with the limits of shopLimits, whose policies exist.
func limitsPort(t *testing.T) (p *port, ready *string) {
	t.Helper()
	c, _, faults := limitador.Load(rulefile.File{Name: "l.yaml", Text: []byte(shopLimits)})
	require.NoError(t, faults.Err())
	ready = new(string)
	p = newPort(t, func(w *web.Config) {
		w.NotReady = func(string) string { return *ready }
		w.Service = &descriptors.Service{
			Limits: func() *limitador.Config { return c }, LimitsHeaders: func() bool { return false },
			Options: func() (rls.Options, wire.Headers) { return rls.Options{}, wire.Headers{} },
			Now:     func() limit.Instant { return 0 }, Counts: new(descriptors.Counts),
		}
	})
	for _, is := range c.Limits() {
		p.fed.Do(append([]string{"RL.POLICY", "SET", is.Policy, "LIMITS"}, strings.Fields(is.Limits.Text[0])...)...)
	}
	return p, ready
}

// post sends a request about limits.
func (p *port) post(path, body string, change func(r *http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:7"
	r.Header.Set("Content-Type", "application/json")
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	p.ServeFrom(&conn{from: r.RemoteAddr}, w, r)
	return w
}

func TestRequestsAboutLimits(t *testing.T) {
	p, _ := limitsPort(t)
	const body = `{"namespace":"a/b","values":{"user":"ada","\u00e4":"1"},"delta":2,"response_headers":"DRAFT_VERSION_03","more":[1]}`
	w := p.post("/check_and_report", body, nil)
	require.Equal(t, 200, w.Code, w.Body)
	require.Equal(t, "null\n", w.Body.String())
	require.Equal(t, `3, 3;w=60;name="user", 100;w=3600`, field(w, "X-RateLimit-Limit"))
	require.Equal(t, []string{"1", "60"}, []string{field(w, "X-RateLimit-Remaining"), field(w, "X-RateLimit-Reset")})
	w = p.post("/check_and_report", body, nil)
	require.Equal(t, 429, w.Code)
	require.Equal(t, "Too many requests", w.Body.String())
	require.Equal(t, "0", field(w, "X-RateLimit-Remaining"))
	require.Equal(t, 429, p.post("/check", body, nil).Code)
	w = p.post("/check", strings.Replace(body, `"delta":2`, `"delta":1`, 1), nil)
	require.Equal(t, 200, w.Code)
	require.Empty(t, field(w, "X-RateLimit-Limit"))
	for range 3 {
		require.Equal(t, 200, p.post("/report", body, nil).Code)
	}
	require.Contains(t, p.asked[len(p.asked)-1], "RL.USE lim.a_b.user")
	require.Equal(t, 200, p.post("/check_and_report", strings.ReplaceAll(body, "ada", "bob"), nil).Code)
	require.Equal(t, 200, p.post("/check_and_report", strings.ReplaceAll(body, "a/b", "none"), nil).Code)
	require.Equal(t, 200, p.post("/check", `{"namespace":"a/b","values":{},"delta":0}`, nil).Code)
}

func TestRequestsAboutLimitsThatAreRefused(t *testing.T) {
	p, _ := limitsPort(t)
	for body, status := range map[string]int{
		"": 400, "null": 400, "[]": 400, "{": 400, "{}": 400, "\xff": 400, `{"namespace":"a/b","values":{},"delta":1} {}`: 400,
		`{"values":{},"delta":1}`:                                            400,
		`{"namespace":"a/b","delta":1}`:                                      400,
		`{"namespace":"a/b","values":null,"delta":1}`:                        400,
		`{"namespace":"a/b","values":{}}`:                                    400,
		`{"namespace":"","values":{},"delta":1}`:                             400,
		`{"namespace":"a/b","values":{"user":1},"delta":1}`:                  400,
		`{"namespace":"a/b","values":{"user":["a"]},"delta":1}`:              400,
		`{"namespace":"a/b","values":{"user":"\ud800"},"delta":1}`:           400,
		`{"namespace":"a/b","values":{"\udfff":"a"},"delta":1}`:              400,
		"{\"namespace\":\"a/b\",\"values\":{\"user\":\"\xff\"},\"delta\":1}": 400,
		`{"namespace":"a/b","values":{},"delta":-1}`:                         400,
		`{"namespace":"a/b","values":{},"delta":1.5}`:                        400,
		`{"namespace":"a/b","values":{},"delta":"1"}`:                        400,
		`{"namespace":"a/b","values":{},"delta":9223372036854775808}`:        400,
		`{"namespace":"a/b","values":` + strings.Repeat("[", 60_000):         400,
		`{"namespace":"` + strings.Repeat("x", web.MaxBody) + `"}`:           400,
	} {
		for path := range map[string]bool{"/check": true, "/report": true, "/check_and_report": true} {
			w := p.post(path, body, nil)
			require.Equal(t, status, w.Code, "%.100s", body)
		}
	}
	const body = `{"namespace":"a/b","values":{},"delta":1}`
	require.Equal(t, 415, p.ask(t, "POST", "/check", body, set("Content-Type", "text/plain")).Code)
	require.Equal(t, 401, p.post("/check", body, basic("ann", "b")).Code)
	require.Equal(t, 405, p.ask(t, "GET", "/check", "", nil).Code)
	require.Equal(t, 404, p.ask(t, "POST", "/check/", body, nil).Code)
	require.Empty(t, p.asked, "nothing was charged")
	p.reply = "-NOPERM no\r\n"
	require.Equal(t, 403, p.post("/check", body, nil).Code)
	p.reply = "-LOADING wait\r\n"
	require.Equal(t, 503, p.post("/report", body, nil).Code)
	require.Equal(t, 404, newPort(t, nil).post("/check", body, nil).Code, "no limits are loaded")
}

func TestLimitsAreShown(t *testing.T) {
	p, ready := limitsPort(t)
	require.Equal(t, 400, p.ask(t, "GET", "/limits/a%2Fb", "", nil).Code, "RL.RULES of the session has no rules")
	p.reply = "*0\r\n" // that of RL.RULES
	w := p.ask(t, "GET", "/limits/a%2Fb", "", nil)
	require.Equal(t, 200, w.Code)
	require.JSONEq(t, `[
		{"id":"u1","namespace":"a/b","max_value":3,"seconds":60,"name":"user","conditions":["has(descriptors[0].user)"],"variables":["descriptors[0].user"]},
		{"id":null,"namespace":"a/b","max_value":100,"seconds":3600,"name":null,"conditions":[],"variables":[]}]`, w.Body.String())
	require.Equal(t, "[]\n", p.ask(t, "GET", "/limits/none", "", nil).Body.String())
	require.Equal(t, "RL.RULES COUNT 1", p.asked[len(p.asked)-1])
	p.reply = "-NOPERM no\r\n"
	require.Equal(t, 403, p.ask(t, "GET", "/limits/a%2Fb", "", nil).Code)
	require.Equal(t, 405, p.ask(t, "DELETE", "/limits/a%2Fb", "", nil).Code)
	require.Equal(t, 401, p.ask(t, "GET", "/limits/a%2Fb", "", basic("ann", "b")).Code)
	require.Equal(t, "null\n", p.ask(t, "GET", "/status", "", nil).Body.String())
	require.Equal(t, 405, p.ask(t, "POST", "/status", "", nil).Code)
	*ready = "no-rules"
	require.Equal(t, 500, p.post("/status", "", func(r *http.Request) { r.Method = http.MethodGet }).Code)
}

package httplimit_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/httplimit"
	"github.com/cellserver/cellserver/clients/go/limit"
	"github.com/cellserver/cellserver/clients/go/limittest"
)

var noon = time.UnixMilli(1_790_000_000_000)

// setup returns a fake with the policy api and a limiter that asks it.
func setup(t *testing.T, o limit.Options, limits ...string) (*limittest.Fake, *limit.Limiter) {
	t.Helper()
	fake := limittest.New(noon)
	require.NoError(t, fake.Policy("api", limits...))
	o.Policy, o.Log = "api", slog.New(slog.DiscardHandler)
	if o.OnUnavailable == 0 {
		o.OnUnavailable = limit.Allow
	}
	l, err := limit.New(t.Context(), fake.Options(o))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return fake, l
}

func user(*http.Request) (string, error) { return "ann", nil }

// get has h answer a request.
func get(h http.Handler, header ...string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// field returns the field of a response whose name is spelled as the draft does.
func field(r *http.Response, name string) string {
	if v := r.Header[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// hello is the handler that is limited.
var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })

// TestTable plays the requests of table.json.
func TestTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "testdata", "vectors", "table.json"))
	require.NoError(t, err)
	var file struct {
		Vectors []struct {
			Name, Policy, OnUnavailable string
			Limits                      []string
			Instances                   int
			Steps                       []struct {
				At, Cost int64
				Server   string
				Status   int
				Headers  map[string]string
				Asked    bool
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &file))
	require.NotEmpty(t, file.Vectors)
	modes := map[string]limit.OnUnavailable{"allow": limit.Allow, "deny": limit.Deny, "local": limit.Local}
	for _, v := range file.Vectors {
		t.Run(v.Name, func(t *testing.T) {
			fake, l := setup(t, limit.Options{OnUnavailable: modes[v.OnUnavailable], Instances: func() int { return v.Instances }}, v.Limits...)
			cost := int64(1)
			h := httplimit.Middleware(l, user, httplimit.Cost(func(*http.Request) int64 { return cost }))(hello)
			for i, s := range v.Steps {
				fake.Advance(noon.Add(time.Duration(s.At) * time.Millisecond).Sub(fake.Now()))
				switch s.Server {
				case "away":
					fake.GoAway()
					continue
				case "back":
					fake.ComeBack()
					continue
				}
				cost = s.Cost
				before := len(fake.Calls())
				r := get(h)
				require.Equal(t, s.Status, r.StatusCode, "step %d", i)
				require.Equal(t, s.Asked, len(fake.Calls()) > before, "step %d", i)
				for _, name := range []string{"RateLimit", "RateLimit-Policy", "Retry-After"} {
					require.Equal(t, s.Headers[name], field(r, name), "step %d: %s", i, name)
				}
			}
		})
	}
}

func TestBodies(t *testing.T) {
	_, l := setup(t, limit.Options{}, "TB 2 1 60", "SW 1 60 FIXED")
	h := httplimit.Middleware(l, user)(hello)
	require.Equal(t, http.StatusOK, get(h).StatusCode)
	r := get(h)
	require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
	require.Equal(t, "application/problem+json", r.Header.Get("Content-Type"))
	var p limit.Problem
	require.NoError(t, json.NewDecoder(r.Body).Decode(&p))
	require.Equal(t, []string{"api#2"}, p.Violated)
	require.Equal(t, `"api";q=2, "api#2";q=1`, field(r, "RateLimit-Policy"))

	never := httplimit.Middleware(l, user, httplimit.Cost(func(*http.Request) int64 { return 3 }))(hello)
	r = get(never)
	require.NoError(t, json.NewDecoder(r.Body).Decode(&p))
	require.Equal(t, "The cost of the request exceeds the limit.", p.Detail)
	require.Empty(t, field(r, "Retry-After"))
}

func TestFaultsAre500(t *testing.T) {
	fake, l := setup(t, limit.Options{OnUnavailable: limit.Allow}, "TB 2 1 60")
	var log bytes.Buffer
	logger := httplimit.Log(slog.New(slog.NewTextHandler(&log, nil)))
	bad := func(*http.Request) (string, error) { return "", errors.New("no session") }
	require.Equal(t, http.StatusInternalServerError, get(httplimit.Middleware(l, bad, logger)(hello)).StatusCode)
	require.Contains(t, log.String(), "no session")
	require.Empty(t, fake.Calls()[1:], "only the check at start")
}

// TestNegativeCost: no request gives units back.
func TestNegativeCost(t *testing.T) {
	fake, l := setup(t, limit.Options{}, "TB 2 1 60")
	asked := len(fake.Calls())
	cost := httplimit.Cost(func(r *http.Request) int64 { return -r.ContentLength - 1 })
	h := httplimit.Middleware(l, user, cost, httplimit.Log(slog.New(slog.DiscardHandler)))(hello)
	require.Equal(t, http.StatusInternalServerError, get(h).StatusCode)
	require.Len(t, fake.Calls(), asked)
}

// ending is a server that answers after the context of the request has ended.
type ending struct {
	*limittest.Fake
	waits bool
}

func (e *ending) Do(ctx context.Context, words []string) (any, error) {
	if e.waits {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return e.Fake.Do(ctx, words)
}

// TestContextThatEnds: a request that is not decided is not answered with 200, and the wrapped handler does not see it.
func TestContextThatEnds(t *testing.T) {
	server := &ending{Fake: limittest.New(noon)}
	require.NoError(t, server.Policy("api", "TB 2 1 60"))
	o := server.Options(limit.Options{Policy: "api", OnUnavailable: limit.Allow, Deadline: time.Second})
	o.Client = server
	l, err := limit.New(t.Context(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	server.waits = true
	h := httplimit.Middleware(l, user)(hello)
	past, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, ctx := range []context.Context{past, stopped} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
		r := w.Result()
		require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
		require.Equal(t, "1", r.Header.Get("Retry-After"))
		require.NotContains(t, w.Body.String(), "hello")
	}
}

// TestNoHeaders: a 503 has Retry-After all the same, as with the packages of other languages.
func TestNoHeaders(t *testing.T) {
	fake, l := setup(t, limit.Options{OnUnavailable: limit.Deny}, "TB 1 1 60")
	h := httplimit.Middleware(l, user, httplimit.Style(limit.NoHeaders))(hello)
	require.Empty(t, field(get(h), "RateLimit"))
	r := get(h)
	require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
	require.Empty(t, field(r, "Retry-After"))
	fake.Advance(time.Minute)
	fake.GoAway()
	r = get(h)
	require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
	require.Equal(t, "1", field(r, "Retry-After"))
}

// hijackable is a writer whose connection can be taken, as that of HTTP/1.1.
type hijackable struct {
	http.ResponseWriter
	conn net.Conn
}

func (h *hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.conn, nil, nil }

// TestHijack: programs take the connection by http.Hijacker or by http.ResponseController.
func TestHijack(t *testing.T) {
	_, l := setup(t, limit.Options{}, "TB 100 1 60")
	conn, other := net.Pipe()
	defer func() { require.NoError(t, errors.Join(conn.Close(), other.Close())) }()
	request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	for _, hijack := range []func(http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error){
		func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) { return w.(http.Hijacker).Hijack() },
		func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		},
	} {
		var got net.Conn
		var err error
		h := httplimit.Middleware(l, user)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got, _, err = hijack(w) }))
		h.ServeHTTP(&hijackable{httptest.NewRecorder(), conn}, request)
		require.NoError(t, err)
		require.Equal(t, conn, got)
		h.ServeHTTP(httptest.NewRecorder(), request)
		require.ErrorIs(t, err, http.ErrNotSupported)
	}
}

func TestUnlimitedRequests(t *testing.T) {
	fake, l := setup(t, limit.Options{}, "TB 1 1 60")
	asked := len(fake.Calls())
	skip := httplimit.Middleware(l, user, httplimit.Skip(func(*http.Request) bool { return true }))(hello)
	none := httplimit.Middleware(l, httplimit.Header("X-Key", false))(hello)
	for range 3 {
		require.Equal(t, http.StatusOK, get(skip).StatusCode)
		require.Equal(t, http.StatusOK, get(none).StatusCode)
	}
	require.Len(t, fake.Calls(), asked)
}

// TestFieldsOfTheHandlerStay: a limiter inside has the last word, and a redirection has no fields.
func TestFieldsOfTheHandlerStay(t *testing.T) {
	_, l := setup(t, limit.Options{}, "TB 100 1 60")
	limited := func(f http.HandlerFunc) http.Handler { return httplimit.Middleware(l, user)(f) }
	r := get(limited(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("RateLimit", `"own";r=7`) }))
	require.NotEmpty(t, field(r, "RateLimit-Policy"))
	r = get(limited(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit", `"own";r=7`)
		w.WriteHeader(http.StatusCreated)
	}))
	require.Equal(t, `"own";r=7`, r.Header.Get("RateLimit"))
	require.Empty(t, field(r, "RateLimit"))
	for _, status := range []int{http.StatusFound, http.StatusServiceUnavailable} {
		r = get(limited(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		require.Empty(t, field(r, "RateLimit"))
		require.Empty(t, field(r, "RateLimit-Policy"))
	}
	r = get(limited(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.(http.Flusher).Flush()
	}))
	require.NotEmpty(t, field(r, "RateLimit"))
}

// ipWith returns the key for addresses of right options.
func ipWith(t *testing.T, options ...httplimit.Trust) httplimit.Key {
	t.Helper()
	key, err := httplimit.IPWith(options...)
	require.NoError(t, err)
	return key
}

func TestKeys(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.RemoteAddr = "10.0.0.2:80"
	r.Header.Add("X-Forwarded-For", "6.6.6.6, 198.51.100.7")
	r.Header.Set("Authorization", "sk-12345")
	for _, c := range []struct {
		key  httplimit.Key
		want string
	}{
		{httplimit.IP(), "10.0.0.2"},
		{ipWith(t), "10.0.0.2"},
		{ipWith(t, httplimit.TrustedHops(1)), "198.51.100.7"},
		{ipWith(t, httplimit.TrustedNetworks("10.0.0.0/8")), "198.51.100.7"},
		{ipWith(t, httplimit.TrustedNetworks("::1", "10.0.0.2")), "198.51.100.7"},
		{ipWith(t, httplimit.TrustedNetworks("::ffff:10.0.0.2")), "198.51.100.7"},
		{ipWith(t, httplimit.TrustedNetworks("10.0.0.3")), "10.0.0.2"},
		{httplimit.Combine(user, httplimit.IP()), "ann|10.0.0.2"},
		{httplimit.Combine(user, httplimit.Header("Missing", false)), ""},
	} {
		got, err := c.key(r)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	secret, err := httplimit.Header("Authorization", true)(r)
	require.NoError(t, err)
	require.Len(t, secret, 32)
	unix := &net.UnixAddr{Name: "/run/app", Net: "unix"}
	ipWith(t, httplimit.Listens(unix), httplimit.TrustedHops(1))
	ipWith(t, httplimit.Listens(&net.TCPAddr{}))
	for _, wrong := range [][]httplimit.Trust{
		{httplimit.Listens(unix)},
		{httplimit.Listens(unix), httplimit.TrustedNetworks("10.0.0.0/8")},
		{httplimit.TrustedHops(0)},
		{httplimit.TrustedNetworks("10.0.0.0/33")},
		{httplimit.TrustedNetworks("proxy.example")},
		{httplimit.TrustedNetworks("")},
		{httplimit.V6Prefix(65)},
		{httplimit.V6Prefix(47)},
		{httplimit.TrustedHops(1), httplimit.TrustedNetworks("10.0.0.0/8")},
	} {
		_, err := httplimit.IPWith(wrong...)
		require.ErrorIs(t, err, httplimit.ErrAddress)
	}
}

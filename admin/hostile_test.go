package admin_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/admin"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/internal/simnet"
)

// port is an admin port in a bubble of virtual time.
type port struct {
	t       *testing.T
	network *simnet.Network
	address string
}

// serve runs an admin port until the bubble ends.
func serve(t *testing.T, c admin.Config) *port {
	t.Helper()
	p := &port{t: t, network: simnet.New(), address: "127.0.0.1:9121"}
	l, err := p.network.Listen(p.address)
	require.NoError(t, err)
	s := admin.New(c)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, s.Shutdown(ctx))
		require.NoError(t, <-done)
		time.Sleep(time.Second) // net/http waits for half a second after some answers
	})
	return p
}

// dial connects from this machine.
func (p *port) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return p.network.Dial(ctx, "127.0.0.1", p.address)
}

// raw opens a connection and sends bytes as they are.
func (p *port) raw(bytes string) net.Conn {
	p.t.Helper()
	conn, err := p.dial(p.t.Context(), "", "")
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, bytes)
	require.NoError(p.t, err)
	return conn
}

// ask sends a request.
func (p *port) ask(r *http.Request) (*http.Response, error) {
	return (&http.Transport{DialContext: p.dial, DisableKeepAlives: true}).RoundTrip(r)
}

// status reads one answer.
func status(t *testing.T, conn net.Conn) int {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

// TestForeignPagesReachNothing: DNS rebinding names a host that is not ours, and a foreign page
// is another origin or cannot send the header of actions.
func TestForeignPagesReachNothing(t *testing.T) {
	c := newConfig(t)
	c.Hosts = []string{"cellserver.example"}
	h := admin.New(c).Handler()
	action := map[string]string{admin.ActionHeader: "1", "Content-Type": "application/json"}
	with := func(pairs ...string) map[string]string {
		all := make(map[string]string)
		for name, value := range action {
			all[name] = value
		}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	for _, q := range []request{
		{path: "/metrics", host: "evil.example", status: 403, body: "admin-hosts"},
		{path: "/healthz", host: "evil.example:9121", status: 403},
		{path: "/", host: "127.0.0.1.evil.example", user: "ann", password: "a", status: 403},
		{path: "/", host: "localhost.evil.example", user: "ann", password: "a", status: 403},
		{path: "/", host: "2130706433", user: "ann", password: "a", status: 403},
		{path: "/", host: "[::1]:9121", user: "ann", password: "a", status: 200},
		{path: "/", host: "10.1.2.3", user: "ann", password: "a", status: 200},
		{path: "/", host: "LOCALHOST:9121", user: "ann", password: "a", status: 200},
		{path: "/", host: "cellserver.example.:9121", user: "ann", password: "a", status: 200},
		{path: "/", header: map[string]string{"Origin": "http://evil.example"}, user: "ann", password: "a", status: 403},
		{path: "/", header: map[string]string{"Origin": "null"}, user: "ann", password: "a", status: 403},
		{path: "/", header: map[string]string{"Origin": "https://127.0.0.1:9122"}, user: "ann", password: "a", status: 403},
		{path: "/", header: map[string]string{"Origin": "https://127.0.0.1:9121"}, user: "ann", password: "a", status: 200}, // behind a proxy with TLS
		{path: "/", header: map[string]string{"Origin": "http://127.0.0.1:9121"}, user: "ann", password: "a", status: 200},
		{path: "/api/v1/overview", header: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, user: "ann", password: "a", status: 403},
		{path: "/", header: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, user: "ann", password: "a", status: 200},
		{method: "POST", path: "/api/v1/run", header: action, user: "ann", password: "a", status: 200, body: "api for ann"},
		{method: "POST", path: "/api/v1/run", header: with("Origin", "http://127.0.0.1:9121", "Sec-Fetch-Site", "same-origin"), user: "ann", password: "a", status: 200},
		{method: "POST", path: "/api/v1/run", header: with("Origin", "http://evil.example"), user: "ann", password: "a", status: 403},
		{method: "POST", path: "/api/v1/run", header: with("Sec-Fetch-Site", "same-site"), user: "ann", password: "a", status: 403},
		{method: "POST", path: "/api/v1/run", header: with("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"), user: "ann", password: "a", status: 403},
		{method: "POST", path: "/api/v1/run", header: map[string]string{"Content-Type": "application/json"}, user: "ann", password: "a", status: 403},
		{method: "POST", path: "/api/v1/run", header: with("Content-Type", "text/plain"), user: "ann", password: "a", status: 403},
		{method: "POST", path: "/api/v1/run", header: with("Content-Type", "application/x-www-form-urlencoded"), user: "ann", password: "a", status: 403},
		{method: "POST", path: "/", header: action, user: "ann", password: "a", status: 405},
		{method: "POST", path: "/metrics", header: action, status: 405},
		{method: "PUT", path: "/api/v1/run", header: action, user: "ann", password: "a", status: 405},
		{method: "DELETE", path: "/", user: "ann", password: "a", status: 405},
		{method: "OPTIONS", path: "/api/v1/run", header: map[string]string{"Origin": "http://evil.example"}, status: 405},
		{method: "TRACE", path: "/", status: 405},
		{method: "CONNECT", path: "/", status: 405},
		{method: "HEAD", path: "/metrics", status: 200},
	} {
		answer := q.check(t, h)
		require.Empty(t, answer.Header.Get("Access-Control-Allow-Origin"))
	}
}

// TestHostileRequestsAreBounded: whatever is sent, the answer is an error and others are served.
func TestHostileRequestsAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := serve(t, newConfig(t))
		for what, sent := range map[string]string{
			"garbage":             "\x00\xff\x16\x03\x01garbage\r\n\r\n",
			"RESP":                "*1\r\n$4\r\nPING\r\n\r\n\r\n",
			"no host":             "GET / HTTP/1.1\r\n\r\n",
			"two hosts":           "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
			"long header":         "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
			"many headers":        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + strings.Repeat("X: y\r\n", 10_000) + "\r\n",
			"long line":           "GET /" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
			"smuggling":           "POST /api/v1/run HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"two lengths":         "POST /api/v1/run HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
			"negative length":     "POST /api/v1/run HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
			"HTTP/2 preface":      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
			"bare line feeds":     "GET /\n HTTP/1.1\nHost: 127.0.0.1\n\n",
			"broken credentials":  "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic !!!!\r\n\r\n",
			"another scheme":      "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer YTpi\r\n\r\n",
			"path out of the way": "GET /api/v1/../../debug/pprof/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		} {
			conn, err := p.dial(t.Context(), "", "")
			require.NoError(t, err)
			_, _ = io.WriteString(conn, sent) // it may be closed before all is sent
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil {
				require.GreaterOrEqual(t, answer.StatusCode, 300, what)
				require.NoError(t, answer.Body.Close())
			}
			require.NoError(t, conn.Close())
			require.Equal(t, 200, status(t, p.raw("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")), what)
		}
	})
}

// TestALongBodyIsRefused: a handler never gets more of it than its bound.
func TestALongBodyIsRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newConfig(t)
		var read atomic.Int64
		c.API = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if read.Store(int64(len(body))); err != nil {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			}
		})
		p := serve(t, c)
		body := strings.Repeat("x", 1<<20)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.address+"/api/v1/run", strings.NewReader(body))
		require.NoError(t, err)
		r.SetBasicAuth("ann", "a")
		r.Header.Set(admin.ActionHeader, "1")
		r.Header.Set("Content-Type", "application/json")
		answer, err := p.ask(r)
		if err == nil {
			require.Equal(t, http.StatusRequestEntityTooLarge, answer.StatusCode)
			require.NoError(t, answer.Body.Close())
		}
		require.LessOrEqual(t, read.Load(), int64(admin.MaxBody))
	})
}

// TestSlowClientsKeepOutNobody: with all connections held by clients that send their requests
// byte by byte, and many more of these connecting, other clients are served at once.
func TestSlowClientsKeepOutNobody(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newConfig(t)
		c.MaxConnections = 8
		p := serve(t, c)
		for range 5 {
			for range 20 {
				p.raw("GET /metrics HTTP/1.1\r\nHost: 127")
			}
			began := time.Now()
			require.Equal(t, 200, status(t, p.raw("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")))
			require.Zero(t, time.Since(began), "it does not wait for a timeout")
		}
	})
}

// TestASlowHeaderIsCutOff: within the time that a header may take.
func TestASlowHeaderIsCutOff(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		began := time.Now()
		conn := serve(t, newConfig(t)).raw("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n")
		_, err := conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

// TestConnectionsThatAreServedKeepTheirPlace: only those that ask for nothing make room. A request
// beyond the bound is refused.
func TestConnectionsThatAreServedKeepTheirPlace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newConfig(t)
		c.MaxConnections = 2
		serving, end := make(chan struct{}), make(chan struct{})
		c.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			serving <- struct{}{}
			<-end
		})
		p := serve(t, c)
		first := p.raw("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		<-serving
		for range 50 {
			require.Equal(t, 200, status(t, p.raw("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")))
		}
		second := p.raw("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		<-serving
		third := p.raw("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		require.Equal(t, 503, status(t, third))
		_, err := third.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "it makes room for a probe")
		close(end)
		require.Equal(t, 200, status(t, first))
		require.Equal(t, 200, status(t, second))
	})
}

// TestClientsThatReadNothingKeepOutNoProbe: 200 of them have asked for more than they take, again and
// again, and each probe is answered at once.
func TestClientsThatReadNothingKeepOutNoProbe(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newConfig(t)
		long := bytes.Repeat([]byte("x"), 8<<20)
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(long) })
		p := serve(t, c)
		for range 5 {
			for range 200 {
				p.raw("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
			}
			synctest.Wait()
			began := time.Now()
			for range 20 {
				for _, path := range []string{"/healthz", "/readyz"} {
					require.Equal(t, 200, status(t, p.raw("GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")))
				}
			}
			require.Zero(t, time.Since(began))
			time.Sleep(time.Second)
		}
	})
}

// slowLogins is a guard that has seen too many attempts.
type slowLogins struct{ failed chan string }

func (l slowLogins) Attempt(user, address string) (time.Duration, bool, func(*acl.User, bool)) {
	return time.Second, false, func(_ *acl.User, ok bool) {
		if !ok {
			l.failed <- user + " from " + address
		}
	}
}

// TestGuessingIsSlow: an address that has failed often waits for each answer, and few of its
// attempts wait at once.
func TestGuessingIsSlow(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newConfig(t)
		logins := slowLogins{make(chan string, 100)}
		c.Logins = logins
		p := serve(t, c)
		began := time.Now()
		statuses := make(chan int, 40)
		for range cap(statuses) {
			go func() {
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.address+"/", nil)
				r.SetBasicAuth("ann", "wrong")
				answer, err := p.ask(r)
				if err != nil {
					statuses <- 0
					return
				}
				_ = answer.Body.Close()
				statuses <- answer.StatusCode
			}()
		}
		count := make(map[int]int)
		for range cap(statuses) {
			count[<-statuses]++
		}
		require.GreaterOrEqual(t, time.Since(began), time.Second)
		require.Equal(t, 40, count[401]+count[429], "%v", count)
		require.Positive(t, count[401])
		require.Positive(t, count[429], "they cannot all wait at once")
		require.Equal(t, "ann from 127.0.0.1", <-logins.failed)
	})
}

// TestAUserWithoutAPasswordIsForThisMachine, in protected mode.
func TestAUserWithoutAPasswordIsForThisMachine(t *testing.T) {
	c := newConfig(t)
	_, _, err := c.Users.Set("default", []string{"nopass"})
	require.NoError(t, err)
	protected := true
	c.Protected = func() bool { return protected }
	h := admin.New(c).Handler()
	ask := func(from string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		require.NoError(t, err)
		r.Host, r.RemoteAddr = "10.0.0.1", from
		w := newRecorder()
		h.ServeHTTP(w, r)
		return w.status
	}
	require.Equal(t, 200, ask("127.0.0.1:5"))
	require.Equal(t, 200, ask("[::1]:5"))
	require.Equal(t, 403, ask("10.0.0.2:5"))
	require.Equal(t, 403, ask("?"))
	protected = false
	require.Equal(t, 200, ask("10.0.0.2:5"))
}

// recorder keeps the status of an answer.
type recorder struct {
	header http.Header
	status int
}

func newRecorder() *recorder                    { return &recorder{make(http.Header), 200} }
func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }

// TestAPanicEndsOneRequest: the answer is an error, the log does not have the value, which may
// be a key, and the next request is served.
func TestAPanicEndsOneRequest(t *testing.T) {
	c := newConfig(t)
	var log bytes.Buffer
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	c.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("canary") })
	h := admin.New(c).Handler()
	request{path: "/metrics", status: 500, body: "internal error"}.check(t, h)
	request{path: "/healthz", status: 200}.check(t, h)
	require.Contains(t, log.String(), "internal error")
	require.NotContains(t, log.String(), "canary")
}

// TestProfilesAreForThoseWhoMayDebug: only users with the permission for DEBUG get profiles, and
// only with the option that allows them.
func TestProfilesAreForThoseWhoMayDebug(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newConfig(t)
		c.Pprof = true
		p := serve(t, c)
		for _, q := range []struct {
			user, path string
			status     int
		}{
			{"root", "goroutine?debug=1", 200}, {"root", "", 200}, {"root", "cmdline", 404}, {"ann", "goroutine", 403}, {"", "goroutine", 401},
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://%s/debug/pprof/%s", p.address, q.path), nil)
			require.NoError(t, err)
			if q.user != "" {
				r.SetBasicAuth(q.user, q.user[:1])
			}
			answer, err := p.ask(r)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, q.status, answer.StatusCode, "%+v", q)
		}
	})
}

package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/inproc"
)

// onHTTP are the flags of a server with a port for decisions over HTTP.
func onHTTP(n *inproc.World, more ...string) *inproc.Node {
	return n.Start(append([]string{"--http-port", "8080"}, more...)...)
}

// answer is the response to a request of a test.
type answer struct {
	status int
	header http.Header
	body   string
}

// asks sends a request to the port and returns the response. user logs in by a password, unless it is "".
func asks(t *testing.T, c *http.Client, n *inproc.Node, method, path, body, user, password string) answer {
	t.Helper()
	scheme := "http://"
	if n.Server.HTTPAddr() != nil && strings.HasPrefix(path, "tls") {
		scheme, path = "https://", path[len("tls"):]
	}
	r, err := http.NewRequestWithContext(t.Context(), method, scheme+n.Server.HTTPAddr().String()+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	w, err := c.Do(r)
	require.NoError(t, err)
	defer w.Body.Close()
	all, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	return answer{w.StatusCode, w.Header, string(all)}
}

func TestDecisionsOverHTTP(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := onHTTP(w)
		c, web := n.Dial(), w.HTTP(n.Host)
		c.Set("CONFIG SET slowlog-log-slower-than 0")
		c.Set("RL.POLICY SET api LIMITS SW 2 60 FIXED ANCHOR FIRST TB 100 100 1", "RL.POLICY SET jobs LIMITS CC 1 30", "RL.POLICY SET open LIMITS NONE")
		check := func(path string) answer { return asks(t, web, n, "GET", path, "", "", "") }
		got := check("/v1/check/api/key=acme")
		require.Equal(t, 200, got.status)
		require.Equal(t, `"api";q=2;w=60, "api#2";q=100`, got.header.Get("RateLimit-Policy"))
		require.Equal(t, `"api";r=1;t=60, "api#2";r=99;t=1`, got.header.Get("RateLimit"))
		require.Equal(t, 200, check("/v1/check/api/key=acme").status)
		got = check("/v1/check/api/key=acme&deny=403/?key=x")
		require.Equal(t, 403, got.status)
		require.Equal(t, "60", got.header.Get("Retry-After"))
		require.Equal(t, `"api";r=0;t=60, "api#2";r=98`, got.header.Get("RateLimit"))
		require.Contains(t, got.body, `#quota-exceeded`)
		c.Set("RL.OVERRIDE SET api acme LIMITS SW 1000 3600", "RL.BOOST api acme 2 EX 60")
		require.Equal(t, `"api";q=2000;w=3600`, check("/v1/check/api/key=acme").header.Get("RateLimit-Policy"), "of the key")
		c.Set("RL.BLOCK api acme EX 90 REASON loop")
		got = check("/v1/check/api/key=acme")
		require.Equal(t, 429, got.status)
		require.Equal(t, "90", got.header.Get("Retry-After"))
		require.Contains(t, got.body, `#abnormal-usage-detected`)
		got = asks(t, web, n, "POST", "/v1/use", `{"policy":"jobs","key":"a","member":"m"}`, "", "")
		require.JSONEq(t, `{"allowed":true,"limit":1,"remaining":0,"missing":0,"retryAfterMs":-1,"resetAfterMs":30000}`, got.body)
		require.Equal(t, `"jobs";q=1;qu="concurrent-requests"`, got.header.Get("RateLimit-Policy"))
		got = check("/v1/check/open/key=a")
		require.Equal(t, 200, got.status)
		require.Empty(t, got.header.Get("RateLimit"))
		require.Equal(t, 404, check("/v1/check/none/key=a").status)

		before := n.Server.Traffic()
		check("/v1/check/open/key=a")
		after := n.Server.Traffic()
		require.Equal(t, int64(len("*6\r\n$6\r\nRL.USE\r\n$4\r\nopen\r\n$1\r\na\r\n$1\r\n1\r\n$2\r\nMS\r\n$11\r\nWITHDETAILS\r\n")), after.BytesIn-before.BytesIn)
		require.Positive(t, after.BytesOut-before.BytesOut)
		require.EqualValues(t, 2, after.Connections)

		require.Contains(t, c.Do("SLOWLOG", "GET", "100"), inproc.Bulk("RL.USE")+inproc.Bulk("api")+inproc.Bulk("acme"))
		list := c.Do("CLIENT", "LIST")
		require.Contains(t, list, "lib-name=http")
		require.Contains(t, list, "cmd=rl.use")
		require.Contains(t, c.Do("INFO", "commandstats"), "cmdstat_rl.use")
		web.CloseIdleConnections()
		w.Settle()
		require.NotContains(t, c.Do("CLIENT", "LIST"), "lib-name=http")
	})
}

// TestUsersOfHTTP checks the permissions, protected mode and the end of clients.
func TestUsersOfHTTP(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const call = `{"policy":"api","key":"a"}`
		n := onHTTP(w, "--http-bind", "*", "--protected-mode", "no", "--http-user", "gateway")
		c, near, far := n.Dial(), w.HTTP(n.Host), w.HTTP("10.0.0.7")
		require.Equal(t, 401, asks(t, near, n, "POST", "/v1/use", call, "", "").status, "http-user does not exist")
		c.Set("RL.POLICY SET api LIMITS SW 10 60 FIXED", "RL.POLICY SET web LIMITS SW 10 60 FIXED",
			"ACL SETUSER gateway on >secret ~api:* -@all +rl.use", "ACL SETUSER app on >pass ~web:* -@all +rl.use")
		require.Equal(t, 200, asks(t, near, n, "POST", "/v1/use", call, "", "").status)
		require.Equal(t, 403, asks(t, near, n, "GET", "/v1/check/web/key=a", "", "", "").status)
		got := asks(t, near, n, "POST", "/v1/use", `{"policy":"web","key":"a"}`, "", "")
		require.Equal(t, 403, got.status)
		require.Contains(t, got.body, "NOPERM")
		require.Equal(t, 200, asks(t, near, n, "POST", "/v1/use", `{"policy":"web","key":"a","force":true}`, "app", "pass").status)
		require.Equal(t, 403, asks(t, near, n, "POST", "/v1/use", call, "app", "pass").status)
		require.Equal(t, 401, asks(t, near, n, "POST", "/v1/use", call, "app", "wrong").status)
		require.Contains(t, c.Do("ACL", "LOG"), "auth")
		require.Equal(t, 200, asks(t, far, n, "POST", "/v1/use", call, "", "").status)
		c.Set("CONFIG SET protected-mode yes")
		require.Equal(t, 403, asks(t, w.HTTP("10.0.0.8"), n, "POST", "/v1/use", call, "", "").status, "protected mode")
		require.Equal(t, 200, asks(t, w.HTTP(n.Host), n, "POST", "/v1/use", call, "", "").status)
		require.NotEqual(t, ":0\r\n", c.Do("CLIENT", "KILL", "USER", "gateway"))
		w.Settle()
		require.NotContains(t, c.Do("CLIENT", "LIST"), "user=gateway")
		require.Equal(t, 200, asks(t, near, n, "GET", "/v1/check/api/key=a", "", "", "").status, "by another connection")
		require.Equal(t, ":1\r\n", c.Do("ACL", "DELUSER", "app"))
		require.Equal(t, 401, asks(t, near, n, "POST", "/v1/use", call, "app", "pass").status)
	})
}

// TestThePasswordOfTheUserDefault checks that requests without credentials are no way around it.
func TestThePasswordOfTheUserDefault(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := onHTTP(w, "--requirepass", "secret")
		web := w.HTTP(n.Host)
		got := asks(t, web, n, "GET", "/v1/check/api/key=a", "", "", "")
		require.Equal(t, 401, got.status)
		require.Contains(t, got.header.Get("WWW-Authenticate"), "Basic")
		require.Equal(t, 401, asks(t, web, n, "GET", "/v1/check/api/key=a", "", "default", "secret").status, "a client of the gateway has sent this")
		require.Equal(t, 404, asks(t, web, n, "POST", "/v1/use", `{"policy":"api","key":"a"}`, "default", "secret").status)
	})
}

// TestHTTPWithTLS checks HTTP/2 and the user of a certificate, and HTTP/2 without TLS.
func TestHTTPWithTLS(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartTLS("--http-port", "8443", "--http-tls", "yes", "--tls-auth-clients", "optional", "--tls-auth-clients-user", "CN")
		c := s.Dial()
		c.Set("RL.POLICY SET api LIMITS SW 10 60 FIXED", "ACL SETUSER app on ~api:* -@all +rl.use")
		web := func(conf *tls.Config) *http.Client {
			conf.ServerName = ""
			tr := &http.Transport{DialContext: w.Dialer(s.Host), TLSClientConfig: conf, ForceAttemptHTTP2: true}
			t.Cleanup(tr.CloseIdleConnections)
			return &http.Client{Transport: tr}
		}
		pair := s.Authority.Issue(t, certtest.Subject{Name: "app"})
		for range 2 {
			got := asks(t, web(s.Authority.Client(pair)), s.Node, "POST", "tls/v1/use", `{"policy":"api","key":"a","force":true}`, "", "")
			require.Equal(t, 200, got.status, got.body)
		}
		require.Contains(t, c.Do("CLIENT", "LIST"), "user=app")
		got := asks(t, web(s.Authority.Client()), s.Node, "POST", "tls/v1/use", `{"policy":"api","key":"a","force":true}`, "", "")
		require.Equal(t, 403, got.status)

		n := onHTTP(w)
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		tr := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return w.Dialer(n.Host)(ctx, network, address)
		}, Protocols: &protocols}
		t.Cleanup(tr.CloseIdleConnections)
		require.Equal(t, 404, asks(t, &http.Client{Transport: tr}, n, "GET", "/v1/check/api/key=a", "", "", "").status)
	})
}

// TestTheServerStopsWhileHTTPAsks checks that a request that a pause delays is answered, or its connection closed.
func TestTheServerStopsWhileHTTPAsks(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := onHTTP(w)
		c := n.Dial()
		c.Set("RL.POLICY SET api LIMITS SW 10 60 FIXED", "CLIENT PAUSE 3000 ALL")
		web, status := w.HTTP(n.Host), make(chan int, 1)
		address := n.Server.HTTPAddr().String()
		go func() {
			got, err := web.Get("http://" + address + "/v1/check/api/key=a")
			if err != nil {
				status <- 0
				return
			}
			_ = got.Body.Close()
			status <- got.StatusCode
		}()
		w.Settle()
		require.NoError(t, n.Stop())
		require.Contains(t, []int{0, 200, 503}, <-status)
	})
}

// TestAChecksBodyIsNotAwaited: it is that of the gateway's client, which may send it slowly or never.
func TestAChecksBodyIsNotAwaited(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := onHTTP(w)
		n.Dial().Set("RL.POLICY SET api LIMITS SW 2 60")
		for _, body := range []string{"Content-Length: 10", "Transfer-Encoding: chunked"} {
			conn, err := w.Dialer(n.Host)(t.Context(), "tcp", n.Server.HTTPAddr().String())
			require.NoError(t, err)
			began := time.Now()
			_, err = conn.Write([]byte("GET /v1/check/api/key=a HTTP/1.1\r\nHost: x\r\n" + body + "\r\n\r\n"))
			require.NoError(t, err)
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.Equal(t, 200, answer.StatusCode)
			require.Zero(t, time.Since(began))
			require.NoError(t, conn.Close())
		}
	})
}

package server_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/inproc"
)

// goRedis returns a client of the library go-redis with TLS.
func goRedis(t *testing.T, s *inproc.Secure, conf *tls.Config, protocol int) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Protocol: protocol, MaxRetries: -1, ReadTimeout: time.Minute, DialTimeout: time.Minute,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return s.Handshake(conf) },
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestTLSWithGoRedis: a library with TLS calls, pipelines, subscribes and waits, in RESP2 and
// RESP3. Its certificate selects its user. Without one its user is default.
func TestTLSWithGoRedis(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartTLS("--tls-auth-clients", "optional", "--tls-auth-clients-user", "CN")
		require.Equal(t, inproc.OK, s.Dial().Do("ACL", "SETUSER", "app", "on", "~api:*", "&*", "+@all", "-flushall"))
		pair := s.Authority.Issue(t, certtest.Subject{Name: "app"})
		for protocol := 2; protocol <= 3; protocol++ {
			c := goRedis(t, s, s.Authority.Client(pair), protocol)
			who, err := c.Do(t.Context(), "ACL", "WHOAMI").Text()
			require.NoError(t, err)
			require.Equal(t, "app", who)
			reply, err := c.Do(t.Context(), "CL.THROTTLE", "api:acme", 15, 30, 60).Int64Slice()
			require.NoError(t, err)
			require.Equal(t, []int64{0, 16}, reply[:2])
			require.NoError(t, c.Del(t.Context(), "api:acme").Err())
			require.ErrorContains(t, c.Get(t.Context(), "other").Err(), "NOPERM")
			require.ErrorContains(t, c.FlushAll(t.Context()).Err(), "NOPERM User app")
			long := strings.Repeat("v", 5_000)
			calls, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
				for range 20 {
					p.Set(t.Context(), "api:long", long, 0)
					p.Get(t.Context(), "api:long")
				}
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, long, calls[39].(*redis.StringCmd).Val())
			messages := c.Subscribe(t.Context(), "news")
			_, err = messages.Receive(t.Context())
			require.NoError(t, err)
			require.NoError(t, c.Publish(t.Context(), "news", "hello").Err())
			message, err := messages.ReceiveMessage(t.Context())
			require.NoError(t, err)
			require.Equal(t, "hello", message.Payload)
			require.NoError(t, messages.Close())

			nobody := goRedis(t, s, s.Authority.Client(), protocol)
			who, err = nobody.Do(t.Context(), "ACL", "WHOAMI").Text()
			require.NoError(t, err)
			require.Equal(t, "default", who)
			stranger := goRedis(t, s, s.Authority.Client(certtest.New(t).Issue(t, certtest.Subject{Name: "app"})), protocol)
			require.Error(t, stranger.Ping(t.Context()).Err())
		}
	})
}

// TestAdminPortOverTLS: with admin-tls the page, the API and the metrics are served only over TLS,
// to browsers without a certificate. A renewed certificate is used at once.
func TestAdminPortOverTLS(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const port = "8080"
		s := w.StartTLS("--admin-port", port, "--admin-tls", "yes", "--requirepass", "secret", "--tls-auth-clients", "yes")
		address := net.JoinHostPort(s.Host, port)
		get := func(conf *tls.Config, path, password string) (int, string, *tls.ConnectionState) {
			t.Helper()
			client := &http.Client{Transport: &http.Transport{DialContext: w.Dialer(s.Host), TLSClientConfig: conf}}
			defer client.CloseIdleConnections()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+path, nil)
			require.NoError(t, err)
			if password != "" {
				r.SetBasicAuth("default", password)
			}
			answer, err := client.Do(r)
			require.NoError(t, err)
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			return answer.StatusCode, string(body), answer.TLS
		}
		trusts := s.Authority.Client()
		status, body, _ := get(trusts, "/healthz", "")
		require.Equal(t, http.StatusOK, status, body)
		status, _, _ = get(trusts, "/", "")
		require.Equal(t, http.StatusUnauthorized, status)
		status, body, is := get(trusts, "/", "secret")
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, "<html")
		require.EqualValues(t, tls.VersionTLS13, is.Version)
		require.Equal(t, "server", is.PeerCertificates[0].Subject.CommonName)
		status, body, _ = get(s.Authority.Client(s.Pair), "/api/v1/overview", "secret") // a client certificate does no harm
		require.Equal(t, http.StatusOK, status)
		require.True(t, json.Valid([]byte(body)))
		status, body, _ = get(limited(trusts, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), "/metrics", "")
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, "cellserver_build_info")

		for _, conf := range []*tls.Config{
			certtest.New(t).Client(), // it trusts another authority
			limited(trusts, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }),
		} {
			_, err := s.HandshakeAt(port, conf)
			require.Error(t, err)
		}
		nc := s.DialPort(port)
		nc.Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		plain, _ := io.ReadAll(nc.R)
		require.NotContains(t, string(plain), " 200 ", "nothing is answered without TLS")

		renewed := s.Authority.Issue(t, certtest.Subject{Name: "renewed", RSA: true})
		copyFile(t, renewed.CertFile, s.Pair.CertFile)
		copyFile(t, renewed.KeyFile, s.Pair.KeyFile)
		require.NoError(t, s.Reload("test"))
		_, _, is = get(trusts, "/healthz", "")
		require.Equal(t, "renewed", is.PeerCertificates[0].Subject.CommonName)
	})
}

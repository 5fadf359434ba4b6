package server_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/rlstest"
)

// rulesOf writes files with the rules in text, and returns the option that names them.
func rulesOf(t *testing.T, text string) []string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600))
	return []string{"--rls-config", dir}
}

// onService are the flags of a server with a port for Envoy's rate limit service, and rules.
func onService(t *testing.T, more ...string) []string {
	return append(append([]string{"--rls-port", "8081"}, rulesOf(t, fooTwo)...), more...)
}

// calls returns a client of the rate limit service of n.
func calls(t *testing.T, w *inproc.World, n *inproc.Node, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	return serviceAt(t, w.Dialer(n.Host), n.Server.ServiceAddr(), creds)
}

// serviceAt returns a client of the rate limit service at an address, to which dial connects.
func serviceAt(t *testing.T, dial func(ctx context.Context, network, address string) (net.Conn, error), address net.Addr, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("passthrough:"+address.String(), grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) }))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// bytesCodec passes messages through as bytes.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }
func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// limits calls the service with the request that has the given text, and returns the text of the response.
func limits(t *testing.T, c *grpc.ClientConn, request string) (string, error) {
	t.Helper()
	in, out := rlstest.Encode(t, "Request", request), []byte(nil)
	err := c.Invoke(t.Context(), "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", &in, &out, grpc.ForceCodecV2(bytesCodec{}))
	if err != nil {
		return "", err //nolint:wrapcheck // a status
	}
	return rlstest.Decode(t, "Response", out), nil
}

// answers requires that the service answers the request with the response, by their texts.
func answers(t *testing.T, c *grpc.ClientConn, request, response string) {
	t.Helper()
	got, err := limits(t, c, request)
	require.NoError(t, err)
	require.Equal(t, rlstest.Decode(t, "Response", rlstest.Encode(t, "Response", response)), got)
}

// one is a request of one descriptor.
func one(key, value string) string {
	return fmt.Sprintf(`domain: "rl" descriptors { entries { key: %q value: %q } }`, key, value)
}

const (
	okOf2   = `overall_code: 1 statuses { code: 1 current_limit { requests_per_unit: 2 unit: 2 } limit_remaining: %d duration_until_reset { seconds: %d } }`
	overOf2 = `overall_code: 2 statuses { code: 2 current_limit { requests_per_unit: 2 unit: 2 } duration_until_reset { seconds: %d } }`
)

func TestEnvoyAsksForDecisions(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := w.Start(onService(t)...)
		c, s := n.Dial(), calls(t, w, n, insecure.NewCredentials())
		left := 60 - time.Now().Unix()%60
		answers(t, s, one("foo", "x"), fmt.Sprintf(okOf2, 1, left))
		answers(t, s, one("foo", "x"), fmt.Sprintf(okOf2, 0, left))
		answers(t, s, one("foo", "x"), fmt.Sprintf(overOf2, left))
		answers(t, s, one("foo", "y")+` hits_addend: 2`, fmt.Sprintf(okOf2, 0, left))
		answers(t, s, one("bar", "x"), `overall_code: 1 statuses { code: 1 }`)
		answers(t, s, `domain: "other" descriptors { entries { key: "foo" } }`, `overall_code: 1 statuses { code: 1 }`)

		c.Set("RL.BLOCK rls.rl.foo acme EX 3600 REASON loop")
		answers(t, s, one("foo", "acme"), fmt.Sprintf(overOf2, 3600))
		require.Contains(t, c.Do("RL.EXPLAIN", "rls.rl.foo", "acme"), "loop")
		c.Set("RL.OVERRIDE SET rls.rl.foo big LIMITS SW 9 60 FIXED")
		answers(t, s, one("foo", "big"), fmt.Sprintf(`overall_code: 1 statuses { code: 1 current_limit { requests_per_unit: 9 unit: 2 } limit_remaining: 8 duration_until_reset { seconds: %d } }`, left))
		require.Contains(t, c.Do("RL.USE", "rls.rl.foo", "x"), "*5\r\n:1\r\n:2\r\n:0\r\n", "the same count")

		c.Set("CONFIG SET rls-headers ratelimit")
		got, err := limits(t, s, one("foo", "z"))
		require.NoError(t, err)
		require.Contains(t, got, `key:"RateLimit-Remaining" value:"1"`)
		list := c.Do("CLIENT", "LIST")
		require.Contains(t, list, "lib-name=rls")
		require.Contains(t, list, "cmd=rl.use")
		_ = s.Close()
		w.Settle()
		require.NotContains(t, c.Do("CLIENT", "LIST"), "lib-name=rls")
	})
}

func TestErrorsOfTheRateLimitService(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := w.Start(onService(t, "--rls-user", "envoy", "--user", "envoy", "on", "nopass", "~rls.rl.foo:*", "+rl.use")...)
		c, s := n.Dial(), calls(t, w, n, insecure.NewCredentials())
		for request, want := range map[string]string{
			``:                                      "Unknown rate limit domain must not be empty",
			`domain: "rl"`:                          "Unknown rate limit descriptor list must not be empty",
			`domain: "rl" descriptors { limit {} }`: "InvalidArgument the limit of a descriptor needs a unit: second, minute, hour, day, week, month or year",
			`domain: "rl" descriptors { hits_addend { value: 9223372036854775808 } }`: "InvalidArgument hits_addend must be less than 2^63",
		} {
			_, err := limits(t, s, request)
			require.Equal(t, want, status.Code(err).String()+" "+status.Convert(err).Message())
		}
		answers(t, s, one("foo", "x"), fmt.Sprintf(okOf2, 1, 60-time.Now().Unix()%60))
		c.Set("ACL SETUSER envoy resetkeys")
		_, err := limits(t, s, one("foo", "x"))
		require.Equal(t, codes.PermissionDenied, status.Code(err))
		require.Contains(t, c.Do("ACL", "LOG"), "rls.rl.foo:x")
		require.Equal(t, ":1\r\n", c.Do("ACL", "DELUSER", "envoy"))
		_, err = limits(t, s, one("foo", "x"))
		require.Error(t, err)
		_, err = limits(t, s, one("foo", "x"))
		require.Equal(t, codes.PermissionDenied, status.Code(err), "the user is gone")
	})
}

func TestHealthOfTheRateLimitService(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := w.Start(onService(t)...)
		h := grpc_health_v1.NewHealthClient(calls(t, w, n, insecure.NewCredentials()))
		is := func() string {
			r, err := h.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
			require.NoError(t, err)
			return r.GetStatus().String()
		}
		require.Equal(t, "SERVING", is())
		c := n.Dial()
		c.Set("REPLICAOF 127.0.0.1 1")
		require.Equal(t, "NOT_SERVING", is(), "a replica")
		c.Set("REPLICAOF NO ONE")
		require.Equal(t, "SERVING", is())
	})
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		other := w.Start("--rls-port", "8081")
		h := grpc_health_v1.NewHealthClient(calls(t, w, other, insecure.NewCredentials()))
		r, err := h.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		require.Equal(t, "NOT_SERVING", r.GetStatus().String(), "no rules")
	})
}

// TestServiceThatMayNotDecideIsNotServing: the health is NOT_SERVING exactly while each call would be refused.
func TestServiceThatMayNotDecideIsNotServing(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := w.Start(onService(t, "--rls-user", "envoy", "--user", "envoy", "on", "~rls.*", "+rl.use")...)
		conn := calls(t, w, n, insecure.NewCredentials())
		h := grpc_health_v1.NewHealthClient(conn)
		watch, err := h.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "ratelimit"})
		require.NoError(t, err)
		is := func(want string) {
			t.Helper()
			r, err := h.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "ratelimit"})
			require.NoError(t, err)
			require.Equal(t, want, r.GetStatus().String())
			r, err = watch.Recv()
			require.NoError(t, err)
			require.Equal(t, want, r.GetStatus().String())
			_, err = limits(t, calls(t, w, n, insecure.NewCredentials()), one("foo", "x"))
			require.Equal(t, want == "SERVING", err == nil, "%v", err)
		}
		is("SERVING")
		c := n.Dial()
		for _, change := range []struct{ away, back string }{
			{"ACL SETUSER envoy off", "ACL SETUSER envoy on"},
			{"ACL SETUSER envoy -rl.use", "ACL SETUSER envoy +rl.use"},
			{"ACL SETUSER envoy resetkeys", "ACL SETUSER envoy ~rls.*"},
			{"ACL SETUSER envoy resetkeys %R~rls.*", "ACL SETUSER envoy ~rls.*"},
			{"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"},
			{"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"},
		} {
			c.Set(change.away)
			is("NOT_SERVING")
			c.Set(change.back)
			is("SERVING")
		}
		require.Equal(t, ":1\r\n", c.Do("ACL", "DELUSER", "envoy"))
		is("NOT_SERVING")
	})
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := w.Start(onService(t, "--requirepass", "secret")...)
		h := grpc_health_v1.NewHealthClient(calls(t, w, n, insecure.NewCredentials()))
		r, err := h.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		require.Equal(t, "NOT_SERVING", r.GetStatus().String(), "the user default needs a password")
	})
}

// TestRatelimitsPathsOverHTTP: http-port serves the paths of envoyproxy/ratelimit if there are rules.
func TestRatelimitsPathsOverHTTP(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := onHTTP(w, rulesOf(t, fooTwo)...)
		c, web := n.Dial(), w.HTTP(n.Host)
		posts := func(body string) answer { return asks(t, web, n, "POST", "/json", body, "", "") }
		require.Equal(t, answer{200, nil, "OK"}, answer{asks(t, web, n, "GET", "/healthcheck", "", "", "").status, nil, asks(t, web, n, "GET", "/healthcheck", "", "", "").body})
		require.Equal(t, 405, asks(t, web, n, "POST", "/healthcheck", "", "", "").status)
		require.Equal(t, 405, asks(t, web, n, "GET", "/json", "", "", "").status)
		const request = `{"domain":"rl","descriptors":[{"entries":[{"key":"foo","value":"x"}]}]}`
		require.Equal(t, 200, posts(request).status)
		require.Equal(t, 200, posts(request).status)
		over := posts(request)
		require.Equal(t, 429, over.status)
		require.Contains(t, over.body, "OVER_LIMIT")
		require.Equal(t, "application/json", over.header.Get("Content-Type"))
		for _, body := range []string{
			"", "{", "[]", "{}", `{"domain":"rl"}`, `{"domain":"rl","other":1}`, `{"domain":"rl","descriptors":[{"limit":{"requestsPerUnit":1}}]}`,
			`{"domain":"` + strings.Repeat("x", 70_000) + `"}`, "{\"domain\":\"\xff\"}",
		} {
			got := posts(body)
			require.Equal(t, 400, got.status, "%.40s", body)
			require.Equal(t, "Bad Request\n", got.body)
		}
		c.Set("ACL SETUSER default resetkeys ~api:*")
		require.Equal(t, 403, posts(request).status)
		c.Set("ACL SETUSER default allkeys", "REPLICAOF 127.0.0.1 1")
		require.Equal(t, 503, posts(request).status)
		got := asks(t, web, n, "GET", "/healthcheck", "", "", "")
		require.Equal(t, 500, got.status)
		require.Equal(t, "refuses-changes\n", got.body)
	})
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := onHTTP(w)
		for _, path := range []string{"/json", "/healthcheck"} {
			require.Equal(t, 404, asks(t, w.HTTP(n.Host), n, "POST", path, "{}", "", "").status, "without rls-config")
		}
	})
}

// TestHealthcheckLooksAtTheUser: GET /healthcheck is 200 exactly while POST /json could be answered for the same user.
func TestHealthcheckLooksAtTheUser(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := onHTTP(w, append(rulesOf(t, fooTwo), "--http-user", "gateway", "--user", "gateway", "on", ">secret", "~rls.*", "+rl.use")...)
		c, web := n.Dial(), w.HTTP(n.Host)
		is := func(want int, why string, credentials ...string) {
			t.Helper()
			credentials = append(credentials, "", "")
			got := asks(t, web, n, "GET", "/healthcheck", "", credentials[0], credentials[1])
			require.Equal(t, want, got.status, got.body)
			require.Contains(t, got.body, why)
			const look = `{"domain":"rl","hitsAddend":0,"descriptors":[{"entries":[{"key":"other"}]},{"entries":[{"key":"foo","value":"x"}],"hitsAddend":0}]}`
			decided := asks(t, web, n, "POST", "/json", look, credentials[0], credentials[1]).status
			require.Equal(t, want == 200, decided == 200, "%d", decided)
		}
		is(200, "OK")
		is(200, "OK", "gateway", "secret")
		is(401, "password", "gateway", "wrong")
		for _, change := range []struct{ away, back, why string }{
			{"ACL SETUSER gateway off", "ACL SETUSER gateway on", "no-user"},
			{"ACL SETUSER gateway -rl.use", "ACL SETUSER gateway +rl.use", "no-permission"},
			{"ACL SETUSER gateway resetkeys", "ACL SETUSER gateway ~rls.*", "no-permission"},
		} {
			c.Set(change.away)
			web.CloseIdleConnections() // a connection keeps a user that is switched off
			is(500, change.why)
			c.Set(change.back)
			is(200, "OK")
		}
		require.Equal(t, ":1\r\n", c.Do("ACL", "DELUSER", "gateway"))
		is(500, "no-user")
	})
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := onHTTP(w, append(rulesOf(t, fooTwo), "--requirepass", "secret")...)
		got := asks(t, w.HTTP(n.Host), n, "GET", "/healthcheck", "", "", "")
		require.Equal(t, 500, got.status)
		require.Equal(t, "no-user\n", got.body, "the user default needs a password")
		require.Equal(t, 200, asks(t, w.HTTP(n.Host), n, "GET", "/healthcheck", "", "default", "secret").status)
	})
}

// TestHealthMayBeginToNeedRules sets rls-health-needs-rules while the server runs.
func TestHealthMayBeginToNeedRules(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := onHTTP(w, rulesOf(t, "domain: rl")...)
		c, web := n.Dial(), w.HTTP(n.Host)
		for set, want := range map[string]int{"yes": 500, "no": 200} {
			c.Set("CONFIG SET rls-health-needs-rules " + set)
			require.Equal(t, want, asks(t, web, n, "GET", "/healthcheck", "", "", "").status)
		}
	})
}

// TestTogetherChargesOnlyWhatIsOver asks over the port with rls-charge together.
func TestTogetherChargesOnlyWhatIsOver(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := w.Start(onService(t, "--rls-charge", "together")...)
		c, s := n.Dial(), calls(t, w, n, insecure.NewCredentials())
		both := one("foo", "x") + `descriptors { entries { key: "foo" value: "y" } }`
		left := 60 - time.Now().Unix()%60
		answers(t, s, one("foo", "x")+" hits_addend: 2", fmt.Sprintf(okOf2, 0, left))
		over := fmt.Sprintf(`overall_code: 2 statuses { code: 2 current_limit { requests_per_unit: 2 unit: 2 } duration_until_reset { seconds: %d } }
			statuses { code: 1 current_limit { requests_per_unit: 2 unit: 2 } limit_remaining: 2 duration_until_reset { seconds: %d } }`, left, left)
		answers(t, s, both, over)
		require.Contains(t, c.Do("RL.USE", "rls.rl.foo", "y", "PEEK"), "*5\r\n:0\r\n:2\r\n:2\r\n", "not charged")
	})
}

// TestACallShowsAsItsCommands: MONITOR and SLOWLOG show the calls of RL.USE that a request makes.
func TestACallShowsAsItsCommands(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := w.Start(onService(t, "--slowlog-log-slower-than", "0")...)
		s := calls(t, w, n, insecure.NewCredentials())
		answers(t, s, `domain: "rl" descriptors { entries { key: "foo" value: "x" } limit { requests_per_unit: 9 unit: 3 } }`,
			fmt.Sprintf(`overall_code: 1 statuses { code: 1 current_limit { requests_per_unit: 9 unit: 3 } limit_remaining: 8 duration_until_reset { seconds: %d } }`, 3600-time.Now().Unix()%3600))
		require.Contains(t, n.Dial().Do("SLOWLOG", "GET", "9"), "$6\r\nRL.USE\r\n$10\r\nrls.rl.foo\r\n$7\r\nx%@hour\r\n$1\r\n1\r\n$5\r\nLIMIT\r\n$1\r\n9\r\n$7\r\n3600000\r\n")
	})
}

// TestACallWithoutAMessageEnds: a peer cannot keep the memory of calls by sending no messages. Its connection is closed.
func TestACallWithoutAMessageEnds(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := w.Start(onService(t)...)
		c := calls(t, w, n, insecure.NewCredentials())
		s, err := c.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", grpc.ForceCodecV2(bytesCodec{}))
		require.NoError(t, err)
		began := time.Now()
		var out []byte
		require.Equal(t, codes.Unavailable, status.Code(s.RecvMsg(&out)))
		require.Equal(t, 10*time.Second, time.Since(began))
		answers(t, c, one("foo", "x"), fmt.Sprintf(okOf2, 1, 60-time.Now().Unix()%60))
	})
}

// TestOddValuesAreCounted: no value of a client makes an error, after which Envoy would let its request pass.
func TestOddValuesAreCounted(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := w.Start(onService(t)...)
		c := calls(t, w, n, insecure.NewCredentials())
		for _, value := range []string{"a\xff", "", "\x00", strings.Repeat("x", 60<<10), strings.Repeat("\xff", 500<<10)} {
			// entries { key: "foo" value: value }, twice over the limit of 2
			entry := protowire.AppendBytes(protowire.AppendTag(protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "foo"), 2, protowire.BytesType), []byte(value))
			descriptor := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), entry)
			in := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "rl")
			in = protowire.AppendBytes(protowire.AppendTag(in, 2, protowire.BytesType), descriptor)
			for i := range 3 {
				var out []byte
				require.NoError(t, c.Invoke(t.Context(), "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", &in, &out, grpc.ForceCodecV2(bytesCodec{})))
				require.Equal(t, i == 2, strings.Contains(rlstest.Decode(t, "Response", out), "OVER_LIMIT"))
			}
		}
	})
}

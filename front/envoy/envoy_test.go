package envoy

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
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
	"google.golang.org/grpc/test/bufconn"

	"github.com/cellserver/cellserver/front/descriptors"
	"github.com/cellserver/cellserver/front/use"
	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/rlstest"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
	"github.com/cellserver/cellserver/rls/wire"
	"github.com/cellserver/cellserver/transport/direct"
)

// world is a port on a connection in memory, with clients whose commands answer has the replies of.
type world struct {
	t       *testing.T
	server  *Server
	service *descriptors.Service
	network *bufconn.Listener

	answer         atomic.Pointer[func(command string) (string, error)]
	notReady       atomic.Pointer[string]
	opened, closed atomic.Int64
	full           atomic.Bool // connections are refused
	refused        error       // the error of logins
	abouts         chan about
}

// about is a connection, and the TLS state of its login.
type about struct {
	Connection
	tls *tls.ConnectionState
}

// passed is the reply to a call of RL.USE that has passed.
const passed = "*2\r\n*5\r\n:0\r\n:9\r\n:8\r\n:-1\r\n:7000\r\n*1\r\n*5\r\n:0\r\n:9\r\n:8\r\n:-1\r\n:7000\r\n"

// rules are those of the port.
func rules(t *testing.T) *rls.Config {
	c, _, _, faults := rls.Load([]rulefile.File{{Name: "a.yaml", Text: []byte("domain: d\ndescriptors: [{key: k, rate_limit: {unit: minute, requests_per_unit: 9}}]")}}, false)
	require.NoError(t, faults.Err())
	return c
}

func start(t *testing.T, over *tls.Config) *world {
	w := &world{t: t, network: bufconn.Listen(1 << 16), abouts: make(chan about, 100)}
	w.set(func(string) (string, error) { return passed, nil })
	w.ready("")
	of := rules(t)
	w.service = &descriptors.Service{
		Rules:   func() *rls.Config { return of },
		Options: func() (rls.Options, wire.Headers) { return rls.Options{}, wire.Headers{} },
		Now:     func() limit.Instant { return 0 },
		Counts:  new(descriptors.Counts),
	}
	w.server = New(Config{Service: w.service, Open: w.open, TLS: over, Ready: func() string { return *w.notReady.Load() }})
	served := make(chan error, 1)
	go func() { served <- w.server.Serve(w.network) }()
	t.Cleanup(func() {
		w.server.Shutdown(canceled())
		require.NoError(t, <-served)
		require.Equal(t, w.opened.Load(), w.closed.Load(), "each client ends with its connection")
	})
	return w
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func (w *world) set(answer func(command string) (string, error)) { w.answer.Store(&answer) }
func (w *world) ready(why string)                                { w.notReady.Store(&why) }

func (w *world) open(c Connection) (Caller, error) {
	if w.full.Load() {
		return nil, resp.ErrMaxClients
	}
	w.opened.Add(1)
	return &caller{w: w, of: c}, nil
}

type caller struct {
	w     *world
	of    Connection
	ended atomic.Bool
}

func (c *caller) Login(is *tls.ConnectionState) error {
	if c.w.refused != nil {
		return c.w.refused
	}
	c.w.abouts <- about{c.of, is}
	return nil
}

func (c *caller) Do(commands []byte, replies int, out []byte) ([]byte, error) {
	if replies != 1 {
		return out, direct.ErrReplies
	}
	reply, err := (*c.w.answer.Load())(string(commands))
	return append(out, reply...), err
}

func (c *caller) Touch() {}

func (c *caller) Close() {
	if !c.ended.Swap(true) {
		c.w.closed.Add(1)
	}
}

// dial returns a client of the port.
func (w *world) dial(creds credentials.TransportCredentials) *grpc.ClientConn {
	w.t.Helper()
	dialer := func(ctx context.Context, _ string) (net.Conn, error) { return w.network.DialContext(ctx) }
	c, err := grpc.NewClient("passthrough:here", grpc.WithContextDialer(dialer), grpc.WithTransportCredentials(creds))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (w *world) plain() *grpc.ClientConn { return w.dial(insecure.NewCredentials()) }

// raw passes bytes through.
type raw struct{}

func (raw) Name() string { return "proto" }
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

const method = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"

// call sends the request with the given text, and returns the text of the response.
func call(t *testing.T, c *grpc.ClientConn, request string, o ...grpc.CallOption) (string, error) {
	in, out := rlstest.Encode(t, "Request", request), []byte(nil)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Invoke(ctx, method, &in, &out, append(o, grpc.ForceCodecV2(raw{}))...); err != nil {
		return "", err
	}
	return rlstest.Decode(t, "Response", out), nil
}

// on is a request about the value of the key k.
func on(value string) string {
	return fmt.Sprintf("domain: \"d\" descriptors { entries { key: \"k\" value: %q } }", value)
}

// ok is the response to a call that has passed.
func ok(t *testing.T) string {
	return rlstest.Decode(t, "Response", rlstest.Encode(t, "Response",
		`overall_code: 1 statuses { code: 1 current_limit { requests_per_unit: 9 unit: 2 } limit_remaining: 8 duration_until_reset { seconds: 7 } }`))
}

func TestCalls(t *testing.T) {
	w := start(t, nil)
	w.set(func(command string) (string, error) {
		if strings.Contains(command, "\r\nover\r\n") {
			return strings.ReplaceAll(passed, ":0\r\n:9\r\n:8", ":1\r\n:9\r\n:0"), nil
		}
		return passed, nil
	})
	c, want := w.plain(), ok(t)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for j := range 20 {
				if out, err := call(t, c, on(fmt.Sprint("v", i, " ", j))); err != nil || out != want {
					t.Errorf("%q, %v", out, err)
				}
				if out, err := call(t, c, on("over")); err != nil || !strings.Contains(out, "OVER_LIMIT") {
					t.Errorf("%q, %v", out, err)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, w.opened.Load(), "a connection is one client")
	require.Equal(t, []descriptors.Count{{Domain: "d", Code: descriptors.OK, Calls: 1000}, {Domain: "d", Code: descriptors.OverLimit, Calls: 1000}}, w.service.Counts.Snapshot())
}

func TestErrors(t *testing.T) {
	w := start(t, nil)
	c := w.plain()
	for _, of := range []struct {
		reply string
		err   error
		code  codes.Code
		text  string
	}{
		{"-NOPERM no\r\n", nil, codes.PermissionDenied, "NOPERM no"},
		{"-LOADING wait\r\n", nil, codes.Unavailable, "LOADING wait"},
		{"-NOPOLICY no\r\n", nil, codes.Unavailable, descriptors.ErrReplaced.Error()},
		{"-\r\n", nil, codes.Unavailable, ""},
		{":1\r\n", nil, codes.Unavailable, use.ErrReply.Error()},
		{"", direct.ErrClosed, codes.Unavailable, "direct: the connection is closed"},
	} {
		w.set(func(string) (string, error) { return of.reply, of.err })
		_, err := call(t, c, on("x"))
		require.Equal(t, of.code, status.Code(err), "%s", of.reply)
		require.Equal(t, of.text, status.Convert(err).Message())
	}
	_, err := call(t, c, "")
	require.Equal(t, codes.Unknown, status.Code(err))
	require.Equal(t, rls.ErrNoDomain.Error(), status.Convert(err).Message())
	in, out := []byte("\x0a\x05"), []byte(nil)
	err = c.Invoke(t.Context(), method, &in, &out, grpc.ForceCodecV2(raw{}))
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.Contains(t, w.service.Counts.Snapshot(), descriptors.Count{Domain: "other", Code: descriptors.InvalidArgument, Calls: 1})
}

func TestRefusedClients(t *testing.T) {
	for err, want := range map[error]codes.Code{
		resp.Error("ERR max number of clients reached"): codes.Unavailable,
		resp.Error("DENIED protected mode"):             codes.PermissionDenied,
		resp.Error("NOAUTH no such user"):               codes.PermissionDenied,
		direct.ErrClosed:                                codes.Unavailable,
	} {
		w := start(t, nil)
		w.refused = err
		_, is := call(t, w.plain(), on("x"))
		require.Equal(t, want, status.Code(is))
		require.Equal(t, err.Error(), status.Convert(is).Message())
	}
}

// TestARefusedConnectionIsClosed: a connection that the server refuses has no calls, and a later one has.
func TestARefusedConnectionIsClosed(t *testing.T) {
	w := start(t, nil)
	w.full.Store(true)
	c := w.plain()
	_, err := call(t, c, on("x"))
	require.Equal(t, codes.Unavailable, status.Code(err))
	w.full.Store(false)
	_, err = call(t, c, on("x"), grpc.WaitForReady(true))
	require.NoError(t, err)
}

// TestCallsThatTakeTooMuchAreRefused: the calls of a connection that run take a bounded amount of memory.
func TestCallsThatTakeTooMuchAreRefused(t *testing.T) {
	w := start(t, nil)
	finish := make(chan struct{})
	w.set(func(string) (string, error) { <-finish; return passed, nil })
	c, results := w.plain(), make(chan error, 40)
	for range cap(results) {
		go func() { _, err := call(t, c, on(strings.Repeat("x", 100_000))); results <- err }()
	}
	require.Equal(t, codes.ResourceExhausted, status.Code(<-results), "the others run")
	close(finish)
	for range cap(results) - 1 {
		if err := <-results; err != nil {
			require.Equal(t, codes.ResourceExhausted, status.Code(err))
		}
	}
	_, err := call(t, c, on("x"))
	require.NoError(t, err, "the memory is free again")
}

// TestARefusalIsThatOfOneCall: a connection goes on when the reason of a refusal is gone.
func TestARefusalIsThatOfOneCall(t *testing.T) {
	w := start(t, nil)
	w.refused = resp.Error("ERR max number of clients reached")
	c := w.plain()
	_, err := call(t, c, on("x"))
	require.Equal(t, codes.Unavailable, status.Code(err))
	w.refused = nil
	_, err = call(t, c, on("x"))
	require.NoError(t, err)
}

func TestWhatTheServiceDoesNotServe(t *testing.T) {
	w := start(t, nil)
	c := w.plain()
	for _, method := range []string{"/envoy.service.ratelimit.v3.RateLimitService/Other", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/other.Service/Call"} {
		in, out := []byte(nil), []byte(nil)
		require.Equal(t, codes.Unimplemented, status.Code(c.Invoke(t.Context(), method, &in, &out, grpc.ForceCodecV2(raw{}))))
	}
	for size, want := range map[int]codes.Code{wire.MaxRequest + 1: codes.InvalidArgument, 2*wire.MaxRequest + 1: codes.ResourceExhausted} {
		in, out := bytes.Repeat([]byte("x"), size), []byte(nil)
		require.Equal(t, want, status.Code(c.Invoke(t.Context(), "/"+services[0].ServiceName+"/ShouldRateLimit", &in, &out, grpc.ForceCodecV2(raw{}))))
	}
}

func TestHealth(t *testing.T) {
	w := start(t, nil)
	c := grpc_health_v1.NewHealthClient(w.plain())
	check := func(service string) string {
		r, err := c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil {
			return status.Code(err).String()
		}
		return r.GetStatus().String()
	}
	require.Equal(t, "SERVING", check(""))
	require.Equal(t, "SERVING", check("ratelimit"))
	require.Equal(t, "NotFound", check("other"))
	watch, err := c.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "ratelimit"})
	require.NoError(t, err)
	next := func() string {
		r, err := watch.Recv()
		require.NoError(t, err)
		return r.GetStatus().String()
	}
	require.Equal(t, "SERVING", next())
	w.ready("loading")
	require.Equal(t, "NOT_SERVING", check(""), "at once")
	require.Equal(t, "NOT_SERVING", next())
	w.ready("")
	require.Equal(t, "SERVING", next())
	require.EqualValues(t, 1, w.opened.Load(), "the connection is a client")
	require.Empty(t, w.abouts, "without a user")
}

func TestTLS(t *testing.T) {
	authority := certtest.New(t)
	roots := authority.Client().RootCAs
	w := start(t, &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{authority.Issue(t, certtest.Subject{Name: "server"}).TLS},
		ClientCAs: roots, ClientAuth: tls.VerifyClientCertIfGiven,
	})
	out, err := call(t, w.dial(credentials.NewTLS(authority.Client(authority.Issue(t, certtest.Subject{Name: "ann"})))), on("x"))
	require.NoError(t, err)
	require.Equal(t, ok(t), out)
	is := <-w.abouts
	require.Equal(t, "ann", is.tls.VerifiedChains[0][0].Subject.CommonName)
	_, err = call(t, w.plain(), on("x"))
	require.Equal(t, codes.Unavailable, status.Code(err), "a client without TLS")
	require.Empty(t, w.abouts)
}

// TestClientsWithoutHTTP2 checks that the handshake of a client fails which does not offer h2, whatever the configuration offers.
func TestClientsWithoutHTTP2(t *testing.T) {
	authority := certtest.New(t)
	both := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{authority.Issue(t, certtest.Subject{Name: "server"}).TLS},
		NextProtos: []string{"http/1.1", "h2"},
	}
	for _, over := range []*tls.Config{both, {MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return both, nil }}} {
		w := start(t, over)
		for offers, want := range map[string]string{"": "", "http/1.1": "", "grpc-exp": "", "h2": "h2", "http/1.1 h2": "h2", "h2 http/1.1": "h2"} {
			raw, err := w.network.DialContext(t.Context())
			require.NoError(t, err)
			conf := authority.Client()
			conf.NextProtos, conf.MaxVersion = strings.Fields(offers), tls.VersionTLS12 // whose client sees the end of the handshake
			conn := tls.Client(raw, conf)
			if err := conn.HandshakeContext(t.Context()); want == "" {
				require.Error(t, err, "%q", offers)
			} else {
				require.NoError(t, err, "%q", offers)
			}
			require.Equal(t, want, conn.ConnectionState().NegotiatedProtocol, "%q", offers)
			require.NoError(t, raw.Close())
		}
	}
}

func TestTheServerHangsUp(t *testing.T) {
	w := start(t, nil)
	c := w.plain()
	_, err := call(t, c, on("x"))
	require.NoError(t, err)
	(<-w.abouts).Hangup()
	for len(w.abouts) == 0 { // the first call may still use the connection
		_, err = call(t, c, on("x"), grpc.WaitForReady(true))
	}
	require.NoError(t, err, "on another connection")
}

func TestShutdownWaitsForCalls(t *testing.T) {
	w := start(t, nil)
	running, finish := make(chan struct{}), make(chan struct{})
	w.set(func(string) (string, error) {
		close(running)
		<-finish
		return passed, nil
	})
	c := w.plain()
	result := make(chan error, 1)
	go func() { _, err := call(t, c, on("x")); result <- err }()
	<-running
	stopped := make(chan struct{})
	go func() { w.server.Shutdown(context.Background()); close(stopped) }()
	close(finish)
	require.NoError(t, <-result)
	<-stopped
	_, err := call(t, c, on("x"))
	require.Equal(t, codes.Unavailable, status.Code(err))
}

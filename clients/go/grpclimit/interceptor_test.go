package grpclimit_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/cellserver/cellserver/clients/go/grpclimit"
	"github.com/cellserver/cellserver/clients/go/httplimit"
	"github.com/cellserver/cellserver/clients/go/limit"
	"github.com/cellserver/cellserver/clients/go/limittest"
)

// service is a server of gRPC whose calls are limited, and a client of it.
type service struct {
	*limittest.Fake
	grpc_health_v1.HealthClient
	log *bytes.Buffer
}

// serve starts a service, with a policy api of the given limits.
func serve(t *testing.T, key grpclimit.Key, clauses []string, options ...grpclimit.Option) *service {
	t.Helper()
	s := &service{Fake: limittest.New(time.UnixMilli(1_790_000_000_000)), log: &bytes.Buffer{}}
	require.NoError(t, s.Policy("api", clauses...))
	l, err := limit.New(t.Context(), s.Options(limit.Options{Policy: "api", OnUnavailable: limit.Deny, Log: slog.New(slog.DiscardHandler)}))
	require.NoError(t, err)
	options = append(options, grpclimit.Log(slog.New(slog.NewTextHandler(s.log, nil))))
	server := grpc.NewServer(grpc.UnaryInterceptor(grpclimit.Unary(l, key, options...)), grpc.StreamInterceptor(grpclimit.Stream(l, key, options...)))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	listener := bufconn.Listen(1 << 16)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///limited", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	require.NoError(t, err)
	s.HealthClient = grpc_health_v1.NewHealthClient(conn)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		server.Stop()
		require.NoError(t, <-served)
		require.NoError(t, l.Close())
	})
	return s
}

// call makes a unary call with metadata.
func (s *service) call(t *testing.T, values ...string) error {
	t.Helper()
	_, err := s.Check(metadata.AppendToOutgoingContext(t.Context(), values...), &grpc_health_v1.HealthCheckRequest{})
	return err
}

// stream begins a stream, and returns the error of its first message.
func (s *service) stream(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w, err := s.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = w.Recv()
	return err
}

// details returns the parts of a refusal: the time of RetryInfo, or None, and the policies in the way.
func details(err error) (retry time.Duration, violated []string) {
	retry = limit.None
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.RetryInfo:
			retry = d.GetRetryDelay().AsDuration()
		case *errdetails.QuotaFailure:
			for _, v := range d.GetViolations() {
				violated = append(violated, v.GetSubject())
			}
		}
	}
	return retry, violated
}

func one(context.Context, string) (string, error) { return "ann", nil }

func TestDenials(t *testing.T) {
	for name, call := range map[string]func(*service) error{
		"unary":  func(s *service) error { return s.call(t) },
		"stream": func(s *service) error { return s.stream(t) },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, one, []string{"TB 9 1 60", "SW 1 60 FIXED"})
			require.NoError(t, call(s))
			err := call(s)
			require.Equal(t, codes.ResourceExhausted, status.Code(err))
			retry, violated := details(err)
			require.Equal(t, 40*time.Second, retry, "the window ends then")
			require.Equal(t, []string{"policy:api#2"}, violated)
			s.Advance(time.Minute)
			s.GoAway()
			err = call(s)
			require.Equal(t, codes.Unavailable, status.Code(err))
			retry, violated = details(err)
			require.Equal(t, time.Second, retry)
			require.Empty(t, violated)
		})
	}
}

func TestNever(t *testing.T) {
	s := serve(t, one, []string{"TB 2 1 60"}, grpclimit.Cost(func(_ context.Context, method string, request any) int64 {
		require.Equal(t, "/grpc.health.v1.Health/Check", method)
		require.IsType(t, &grpc_health_v1.HealthCheckRequest{}, request)
		return 3
	}))
	err := s.call(t)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Equal(t, "The cost of the request exceeds the limit.", status.Convert(err).Message())
	retry, violated := details(err)
	require.Equal(t, limit.None, retry)
	require.Equal(t, []string{"policy:api"}, violated)
}

func TestFaults(t *testing.T) {
	bad := func(context.Context, string) (string, error) { return "", errors.New("no session") }
	s := serve(t, bad, []string{"TB 2 1 60"})
	require.Equal(t, codes.Internal, status.Code(s.call(t)))
	require.Contains(t, s.log.String(), "no session")
	s = serve(t, one, []string{"TB 2 1 60"}, grpclimit.Cost(func(context.Context, string, any) int64 { return -1 }))
	require.Equal(t, codes.Internal, status.Code(s.call(t)))
	require.NotContains(t, s.log.String(), "ann")
}

func TestUnlimitedCalls(t *testing.T) {
	for _, s := range []*service{
		serve(t, grpclimit.Metadata("x-user", false), []string{"TB 1 1 60"}),
		serve(t, one, []string{"TB 1 1 60"}, grpclimit.Skip(func(context.Context, string) bool { return true })),
	} {
		asked := len(s.Calls())
		for range 3 {
			require.NoError(t, s.call(t))
		}
		require.Len(t, s.Calls(), asked)
	}
}

// TestMetadataOfACall: what a client sends is what the keys read.
func TestMetadataOfACall(t *testing.T) {
	hops, err := grpclimit.IPWith(httplimit.TrustedHops(1))
	require.NoError(t, err)
	s := serve(t, grpclimit.Combine(grpclimit.Metadata("authorization", true), hops, grpclimit.Method()), []string{"TB 9 1 60"})
	require.NoError(t, s.call(t, "authorization", "sk-12345", "x-forwarded-for", "6.6.6.6", "x-forwarded-for", "198.51.100.7"))
	calls := s.Calls()
	require.Regexp(t, `^[0-9a-f]{32}\|198\.51\.100\.7\|/grpc\.health\.v1\.Health/Check$`, calls[len(calls)-1].Key)
}

func TestAddresses(t *testing.T) {
	with := func(addr net.Addr, forwarded ...string) context.Context {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{"x-forwarded-for": forwarded})
		if addr == nil {
			return ctx
		}
		return peer.NewContext(ctx, &peer.Peer{Addr: addr})
	}
	proxy := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 80}
	unix := &net.UnixAddr{Name: "@", Net: "unix"}
	networks, err := grpclimit.IPWith(httplimit.TrustedNetworks("10.0.0.0/8"))
	require.NoError(t, err)
	hops, err := grpclimit.IPWith(httplimit.TrustedHops(1), httplimit.Listens(unix))
	require.NoError(t, err)
	for _, c := range []struct {
		key  grpclimit.Key
		ctx  context.Context
		want string
	}{
		{grpclimit.IP(), with(proxy, "6.6.6.6"), "10.0.0.2"},
		{networks, with(proxy, "6.6.6.6, 198.51.100.7"), "198.51.100.7"},
		{hops, with(proxy, "198.51.100.7"), "198.51.100.7"},
		{hops, with(proxy), "10.0.0.2"},
		{hops, with(unix, "198.51.100.7"), "198.51.100.7"},
		{grpclimit.IP(), with(&net.TCPAddr{IP: net.ParseIP("2001:db8:1:2:a::1"), Port: 9}), "2001:db8:1:2::/64"},
	} {
		got, err := c.key(c.ctx, "/m")
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err = grpclimit.IP()(with(unix), "/m")
	require.Error(t, err)
	_, err = grpclimit.IP()(with(nil), "/m")
	require.Error(t, err)
	_, err = grpclimit.IPWith(httplimit.Listens(unix))
	require.ErrorIs(t, err, httplimit.ErrAddress)
}

// TestCallThatEnds: a call whose context has ended gets the code of that, and not one of the limiter.
func TestCallThatEnds(t *testing.T) {
	fake := limittest.New(time.UnixMilli(1_790_000_000_000))
	require.NoError(t, fake.Policy("api", "TB 1 1 60"))
	o := fake.Options(limit.Options{Policy: "api", OnUnavailable: limit.Allow})
	l, err := limit.New(t.Context(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	fake.GoAway()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = grpclimit.Unary(l, one)(ctx, nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) { return "reached", nil })
	require.Equal(t, codes.Canceled, status.Code(err))
}

package xds_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/ruledir"
	"github.com/cellserver/cellserver/tools/xds"
)

// config returns a resource with one limit.
func config(t *testing.T, name, domain, key string, unit ratelimit.RateLimitUnit) *anypb.Any {
	t.Helper()
	c := &ratelimit.RateLimitConfig{Name: name, Domain: domain, Descriptors: []*ratelimit.RateLimitDescriptor{
		{Key: key, RateLimit: &ratelimit.RateLimitPolicy{Unit: unit, RequestsPerUnit: 2}},
	}}
	a, err := anypb.New(c)
	require.NoError(t, err)
	return a
}

// plane is a control plane. Each stream gets the responses of the channel, and its requests go to another.
type plane struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	requests  chan *discovery.DiscoveryRequest
	responses chan *discovery.DiscoveryResponse // nil ends the stream
	header    chan string
}

func (p *plane) StreamAggregatedResources(s discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	md, _ := metadata.FromIncomingContext(s.Context())
	p.header <- md.Get("x-tenant")[0]
	for {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		p.requests <- r
		select {
		case next := <-p.responses:
			if next == nil {
				return status.Error(codes.Unavailable, "going away")
			}
			if err := s.Send(next); err != nil {
				return err
			}
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
}

// loader is a server that reads the rules at path.
type loader struct {
	path  string
	mu    sync.Mutex
	rules *rls.Config
}

func (l *loader) Reload(context.Context) error {
	is, err := ruledir.Look(l.path)
	if err != nil {
		return err
	}
	files, err := is.Read()
	if err != nil {
		return err
	}
	c, _, _, faults := rls.Load(files, false)
	if faults != nil {
		return errors.New(faults[0].Error())
	}
	l.mu.Lock()
	l.rules = c
	l.mu.Unlock()
	return nil
}

func (l *loader) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rules.Len()
}

// TestResponsesAreAcknowledged plays a control plane: rules in force are acknowledged with their version, faults are refused
// with their text and the version before, and a stream that ends is opened again.
func TestResponsesAreAcknowledged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "config")
	p := &plane{requests: make(chan *discovery.DiscoveryRequest), responses: make(chan *discovery.DiscoveryResponse), header: make(chan string, 9)}
	listener := bufconn.Listen(1 << 20)
	g := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(g, p)
	go g.Serve(listener) //nolint:errcheck // it ends with the test
	defer g.Stop()

	server := &loader{path: dir}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	c := xds.Client{
		Settings: &xds.Settings{
			NodeID: "envoy-ratelimit", NodeMetadata: "a=b", Address: "passthrough:plane", ConnectRetry: time.Millisecond,
			BackoffInitial: time.Millisecond, BackoffMax: time.Millisecond, BackoffJitter: true, Headers: map[string]string{"x-tenant": "acme"},
		},
		Directory: &xds.Directory{Path: dir}, Server: server, Log: slog.New(slog.DiscardHandler),
		Dial: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })},
	}
	go func() { done <- c.Run(ctx) }()

	answer := func(version string, resources ...*anypb.Any) *discovery.DiscoveryRequest {
		p.responses <- &discovery.DiscoveryResponse{VersionInfo: version, Nonce: "n" + version, TypeUrl: "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig", Resources: resources}
		return <-p.requests
	}
	first := <-p.requests
	require.Equal(t, "acme", <-p.header)
	require.Equal(t, "envoy-ratelimit", first.GetNode().GetId())
	require.Equal(t, "b", first.GetNode().GetMetadata().GetFields()["a"].GetStringValue())
	require.Equal(t, "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig", first.GetTypeUrl())
	require.Empty(t, first.GetVersionInfo())

	refused := answer("0", config(t, "x", "rl", "", ratelimit.RateLimitUnit_MINUTE))
	require.Contains(t, refused.GetErrorDetail().GetMessage(), "a descriptor has no key")
	require.Empty(t, refused.GetVersionInfo())
	require.NoFileExists(t, dir)

	ack := answer("1", config(t, "x", "rl", "foo", ratelimit.RateLimitUnit_MINUTE), config(t, "y", "other", "foo", ratelimit.RateLimitUnit_HOUR))
	require.Nil(t, ack.GetErrorDetail())
	require.Equal(t, []string{"1", "n1"}, []string{ack.GetVersionInfo(), ack.GetResponseNonce()})
	require.Equal(t, 2, server.count())

	for _, bad := range [][]*anypb.Any{
		{config(t, "x", "rl", "foo", ratelimit.RateLimitUnit_UNKNOWN)},
		{config(t, "x", "rl", "foo", 99)},
		{config(t, "x", "rl", "foo", 1), config(t, "y", "rl", "foo", 1)},
		{{TypeUrl: "type.googleapis.com/google.protobuf.Struct"}},
	} {
		refused = answer("2", bad...)
		require.NotEmpty(t, refused.GetErrorDetail().GetMessage())
		require.Equal(t, []string{"1", "n2"}, []string{refused.GetVersionInfo(), refused.GetResponseNonce()})
		require.Equal(t, 2, server.count())
		require.NoError(t, server.Reload(ctx), "the files are those before")
	}

	p.responses <- nil
	again := <-p.requests
	require.Empty(t, again.GetVersionInfo(), "a new stream begins anew")
	require.Equal(t, "3", answer("3", config(t, "x", "rl", "foo", 1)).GetVersionInfo())
	require.Equal(t, 1, server.count())
	require.Equal(t, "4", answer("4").GetVersionInfo(), "no resources are no rules")
	require.Zero(t, server.count())
	left, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, left, 2, "the link and one directory")
	stop()
	require.NoError(t, <-done)
}

// TestFilesOfResources: the server reads from the files what the resources say.
func TestFilesOfResources(t *testing.T) {
	metadata, err := structpb.NewStruct(map[string]any{"team": "a", "n": 1})
	require.NoError(t, err)
	whole, err := anypb.New(&ratelimit.RateLimitConfig{Name: "x", Domain: "rl", Descriptors: []*ratelimit.RateLimitDescriptor{{
		Key: "k: '", Value: "v\n#", ShadowMode: true, QuotaMode: true, DetailedMetric: true, Metadata: metadata,
		RateLimit:   &ratelimit.RateLimitPolicy{Unit: ratelimit.RateLimitUnit_WEEK, RequestsPerUnit: 4294967295, Name: "n", Replaces: []*ratelimit.RateLimitReplace{{Name: "m"}}},
		Descriptors: []*ratelimit.RateLimitDescriptor{{Key: "true", RateLimit: &ratelimit.RateLimitPolicy{Unlimited: true}}},
	}}})
	require.NoError(t, err)
	files, err := xds.Files([]*anypb.Any{whole})
	require.NoError(t, err)
	for name, text := range files {
		require.Equal(t, `domain: rl
descriptors:
    - key: 'k: '''
      value: |-
        v
        #
      rate_limit:
        requests_per_unit: 4294967295
        unit: week
        name: "n"
        replaces:
            - name: m
      descriptors:
        - key: "true"
          rate_limit:
            requests_per_unit: 0
            unlimited: true
      shadow_mode: true
      detailed_metric: true
      quota_mode: true
      metadata:
        "n": 1
        team: a
`, string(text))
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		l := &loader{path: dir}
		require.NoError(t, l.Reload(t.Context()))
		require.Equal(t, 2, l.count())
	}

	future := &anypb.Any{TypeUrl: whole.GetTypeUrl(), Value: protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)}
	_, err = xds.Files([]*anypb.Any{future})
	require.ErrorContains(t, err, "has fields that are not known here")
	_, err = xds.Files([]*anypb.Any{whole, whole})
	require.ErrorContains(t, err, `resource "x" is there twice`)
}

// TestNamesOfFilesStayInTheDirectory: a domain cannot choose a path, and two domains have two files.
func TestNamesOfFilesStayInTheDirectory(t *testing.T) {
	var all []*anypb.Any
	for _, domain := range []string{"", ".", "..", "../../etc/passwd", "/x", `a\b`, "a/b", "a.b", "a\x00b", "ä", ".hidden", string(make([]byte, 5000))} {
		all = append(all, config(t, "", domain, "k", 1))
	}
	files, err := xds.Files(all)
	require.NoError(t, err)
	require.Len(t, files, len(all))
	for name := range files {
		require.Regexp(t, `^rules-[a-zA-Z0-9-]{1,60}\.yaml$`, name)
	}
}

// TestDirectoryOfOthers: a directory with files is not replaced.
func TestDirectoryOfOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine.yaml"), nil, 0o600))
	d := xds.Directory{Path: dir}
	_, err := d.Swap(nil)
	require.ErrorContains(t, err, "has to be empty")
	require.FileExists(t, filepath.Join(dir, "mine.yaml"))
}

// TestReloadOfCellserver: the server says whether the rules are in force, and is waited for.
func TestReloadOfCellserver(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		dir := filepath.Join(t.TempDir(), "config")
		files := &xds.Directory{Path: dir}
		n := w.Start("--rls-config", dir, "--rls-config-required", "no")
		dial := w.Dialer(n.Host)
		late := time.Now().Add(time.Second)
		client := redis.NewClient(&redis.Options{Addr: n.Addr(), DisableIdentity: true, Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			if time.Now().Before(late) {
				return nil, errors.New("not yet")
			}
			return dial(ctx, network, address)
		}})
		defer client.Close() //nolint:errcheck // the test ends
		s := xds.Cellserver{Client: client}
		put := func(resources ...*anypb.Any) {
			t.Helper()
			all, err := xds.Files(resources)
			require.NoError(t, err)
			_, err = files.Swap(all)
			require.NoError(t, err)
		}
		put(config(t, "x", "rl", "foo", 2))
		require.NoError(t, s.Reload(t.Context()))
		require.Contains(t, n.Dial().Do("RL.POLICY", "GET", "rls.rl.foo"), "SW 2 60 FIXED")
		put(config(t, "x", "rl", "foo", 0))
		require.ErrorContains(t, s.Reload(t.Context()), ".yaml:")
		require.Contains(t, n.Dial().Do("RL.POLICY", "GET", "rls.rl.foo"), "SW 2 60 FIXED")
	})
}

func TestSettings(t *testing.T) {
	t.Setenv("CONFIG_TYPE", "GRPC_XDS_SOTW")
	t.Setenv("RUNTIME_ROOT", "/data")
	t.Setenv("RUNTIME_SUBDIRECTORY", "ratelimit")
	t.Setenv("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "a:b,c:d")
	s, err := xds.FromEnvironment()
	require.NoError(t, err)
	require.True(t, s.Uses())
	require.Equal(t, "/data/ratelimit/config", s.Rules())
	require.Equal(t, map[string]string{"a": "b", "c": "d"}, s.Headers)
	require.Equal(t, 10*time.Second, s.BackoffInitial)
	t.Setenv("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", "10")
	_, err = xds.FromEnvironment()
	require.ErrorContains(t, err, "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL")
}

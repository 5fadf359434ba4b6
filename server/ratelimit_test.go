package server_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/cellserver/cellserver/config/envoyenv"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// fromEnvironment returns a server that does not run yet, with the options that follow from variables of ratelimit.
func fromEnvironment(t *testing.T, w *inproc.World, environ ...string) (n *inproc.Node) {
	t.Helper()
	presets, idle, err := envoyenv.Translate(environ)
	require.NoError(t, err)
	var flags []string
	for _, p := range presets {
		flags = append(flags, "--"+p.Option+"="+p.Value)
	}
	return w.Node(func(o *server.Options) {
		listen := o.Listen
		o.Listen = func(network, address string) (net.Listener, error) { // the network of the test has no address that stands for all
			_, port, err := net.SplitHostPort(address)
			require.NoError(t, err)
			return listen(network, net.JoinHostPort(n.Host, port))
		}
		o.IdleVariables = idle
	}, flags...)
}

// TestEnvironmentOfRatelimit starts a server with the variables of ratelimit. It has no port for Redis clients, and serves
// other machines.
func TestEnvironmentOfRatelimit(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		root := t.TempDir()
		dir := filepath.Join(root, "ratelimit", "config")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(fooTwo), 0o600))
		n := fromEnvironment(t, w, "RUNTIME_ROOT="+root, "RUNTIME_SUBDIRECTORY=ratelimit", "REDIS_URL=redis:6379", "REDIS_AUTH=secret",
			"SHADOW_MODE=true", "LIMIT_RESPONSE_HEADERS_ENABLED=true")
		require.NoError(t, n.Run())
		require.Equal(t, net.JoinHostPort(n.Host, "8081"), n.Server.ServiceAddr().String())
		require.Equal(t, net.JoinHostPort(n.Host, "8080"), n.Server.HTTPAddr().String())
		require.False(t, n.OpenAt("6379"))
		require.Contains(t, n.Log.String(), `variables="REDIS_AUTH REDIS_URL"`)
		require.NotContains(t, n.Log.String(), "secret")

		dial := w.Dialer("10.0.0.7")
		s, err := grpc.NewClient("passthrough:"+n.Server.ServiceAddr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) }))
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		for range 3 {
			got, err := limits(t, s, one("foo", "x"))
			require.NoError(t, err)
			require.Contains(t, got, "overall_code:OK")
			require.Contains(t, got, `key:"RateLimit-Limit"`)
		}
	})
}

// TestStartWithoutRules: FORCE_START_WITHOUT_INITIAL_CONFIG lets the server start without files, and with a file that has
// a fault. It answers UNKNOWN until there are rules.
func TestStartWithoutRules(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		root := t.TempDir()
		require.ErrorContains(t, fromEnvironment(t, w, "RUNTIME_ROOT="+root).Run(), "no such file")
		n := fromEnvironment(t, w, "RUNTIME_ROOT="+root, "FORCE_START_WITHOUT_INITIAL_CONFIG=true")
		require.NoError(t, n.Run())
		s := calls(t, w, n, insecure.NewCredentials())
		unknown := func() {
			t.Helper()
			_, err := limits(t, s, one("foo", "x"))
			require.Equal(t, "Unknown no rate limit configuration loaded", status.Code(err).String()+" "+status.Convert(err).Message())
		}
		unknown()
		time.Sleep(500 * time.Millisecond) // the server looks at the files at other instants than this test changes them
		file := filepath.Join(root, "config", "a.yaml")
		require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte("domain: rl\nnosuch: 1\n"), 0o600))
		time.Sleep(2 * time.Second)
		unknown()
		require.Contains(t, n.Log.String(), "a.yaml:2")
		require.NoError(t, os.WriteFile(file, []byte(fooTwo), 0o600))
		time.Sleep(2 * time.Second)
		got, err := limits(t, s, one("foo", "x"))
		require.NoError(t, err)
		require.Contains(t, got, "limit_remaining:1")
	})
}

// TestHealthNeedsRules: with HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED a server is healthy once there is a rule.
func TestHealthNeedsRules(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		root := t.TempDir()
		n := fromEnvironment(t, w, "RUNTIME_ROOT="+root, "FORCE_START_WITHOUT_INITIAL_CONFIG=true", "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true")
		require.NoError(t, n.Run())
		h, web := grpc_health_v1.NewHealthClient(calls(t, w, n, insecure.NewCredentials())), w.HTTP(n.Host)
		is := func(serving string, status int) {
			t.Helper()
			r, err := h.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
			require.NoError(t, err)
			require.Equal(t, serving, r.GetStatus().String())
			require.Equal(t, status, asks(t, web, n, "GET", "/healthcheck", "", "", "").status)
		}
		is("NOT_SERVING", 500)
		time.Sleep(500 * time.Millisecond) // the server looks at the files at other instants than this test changes them
		file := filepath.Join(root, "config", "a.yaml")
		require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
		time.Sleep(2 * time.Second)
		is("NOT_SERVING", 500)
		require.NoError(t, os.WriteFile(file, []byte(fooTwo), 0o600))
		time.Sleep(2 * time.Second)
		is("SERVING", 200)
	})
}

//go:build real && unix

package xds_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
)

// TestProgram runs the program beside the server, as in an image: the server gets its rules from a control plane, and ends
// with the program.
func TestProgram(t *testing.T) {
	bin, data := t.TempDir(), t.TempDir()
	for _, build := range [][]string{{"-C", "../..", "build", "-o", bin, "./cmd/cellserver"}, {"build", "-o", bin, "./ratelimit"}} {
		out, err := exec.Command("go", build...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	p := &plane{requests: make(chan *discovery.DiscoveryRequest), responses: make(chan *discovery.DiscoveryResponse), header: make(chan string, 9)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(g, p)
	go g.Serve(listener) //nolint:errcheck // it ends with the test
	defer g.Stop()

	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(bin, "ratelimit"))
	cmd.Env = append(os.Environ(), "CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL="+listener.Addr().String(),
		"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=x-tenant:acme", "RUNTIME_ROOT="+data, "RUNTIME_SUBDIRECTORY=ratelimit",
		"GRPC_PORT=0", "PORT=0", "LOG_LEVEL=info")
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	defer cmd.Process.Kill() //nolint:errcheck // it may have ended

	<-p.requests
	p.responses <- &discovery.DiscoveryResponse{VersionInfo: "1", Nonce: "a", Resources: []*anypb.Any{config(t, "x", "rl", "foo", 2)}}
	ack := <-p.requests
	require.Nil(t, ack.GetErrorDetail())
	require.Equal(t, "1", ack.GetVersionInfo())
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: filepath.Join(data, "ratelimit", ".cellserver.sock"), DisableIdentity: true})
	defer client.Close() //nolint:errcheck // the test ends
	require.NoError(t, client.Do(t.Context(), "RL.POLICY", "GET", "rls.rl.foo").Err())
	p.responses <- &discovery.DiscoveryResponse{VersionInfo: "2", Nonce: "b", Resources: []*anypb.Any{config(t, "x", "rl", "foo", 0)}}
	refused := <-p.requests
	require.Equal(t, "1", refused.GetVersionInfo())
	require.Contains(t, refused.GetErrorDetail().GetMessage(), ".yaml:")

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), "%s", &log)
	require.Contains(t, log.String(), "the rules of the control plane are in force")
}

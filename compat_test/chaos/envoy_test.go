package chaos_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health" // the health check of clients
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/rlstest"
	"github.com/cellserver/cellserver/internal/storetest"
)

// serviceCallers is how many callers call the rate limit service at once, each over one of serviceConns connections.
const serviceCallers, serviceConns = 64, 8

// serviceRules limit each tenant to so many requests in a year, so that no window ends during a test.
const (
	serviceRules = "domain: shop\ndescriptors:\n  - key: tenant\n    rate_limit: {unit: year, requests_per_unit: 4000}\n"
	serviceLimit = 4000
)

// serviceNode returns the options of a node that is a rate limit service, and the address of that.
func serviceNode(t *testing.T, args ...string) (o storetest.Options, addr string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ratelimit.yaml")
	require.NoError(t, os.WriteFile(file, []byte(serviceRules), 0o600))
	port := freeport.Choose()
	return storetest.Options{Args: append([]string{"--rls-port", port, "--rls-config", file}, args...)}, "127.0.0.1:" + port
}

// serviceLoad is what callers do that all ask for the same descriptor, until each of them is denied.
type serviceLoad struct {
	admitted, failed atomic.Int64
	work             sync.WaitGroup
}

// startServiceLoad starts the callers. They call the nodes at addrs that their health check says are serving.
func startServiceLoad(t *testing.T, addrs ...string) *serviceLoad {
	t.Helper()
	nodes := manual.NewBuilderWithScheme("nodes")
	var state resolver.State
	for _, addr := range addrs {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: addr}}})
	}
	nodes.InitialState(state)
	request := rlstest.Encode(t, "Request", `domain: "shop" descriptors { entries { key: "tenant" value: "hot" } }`)
	ctx, end := context.WithCancel(context.Background())
	l := &serviceLoad{}
	t.Cleanup(func() {
		end()
		l.work.Wait()
	})
	for range serviceConns {
		conn, err := grpc.NewClient("nodes:///", grpc.WithResolvers(nodes), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": "ratelimit"}}`),
			grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second, Backoff: backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 50 * time.Millisecond}}))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		for range serviceCallers / serviceConns {
			l.work.Go(func() { l.call(ctx, conn, request) })
		}
	}
	return l
}

// call calls until a call is denied.
func (l *serviceLoad) call(ctx context.Context, conn *grpc.ClientConn, request []byte) {
	for ctx.Err() == nil {
		var response []byte
		err := conn.Invoke(ctx, "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", &request, &response,
			grpc.ForceCodecV2(passed{}), grpc.WaitForReady(true))
		switch {
		case err != nil:
			l.failed.Add(1)
			time.Sleep(time.Millisecond) // a server that is away refuses at once
		case overall(response) == codeOK:
			l.admitted.Add(1)
		default:
			return
		}
	}
}

// codeOK is the code OK of a response.
const codeOK = 1

// overall returns overall_code of a response, which the service writes first, or 0.
func overall(response []byte) uint64 {
	if len(response) < 2 || response[0] != 1<<3 {
		return 0
	}
	code, _ := binary.Uvarint(response[1:])
	return code
}

// passed is a codec that passes bytes through.
type passed struct{}

func (passed) Name() string { return "proto" }

func (passed) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.(*[]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
	}
	return nil, os.ErrInvalid
}

func (passed) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// awaitAdmitted waits until so many calls were admitted.
func (l *serviceLoad) awaitAdmitted(t *testing.T, n int64) {
	t.Helper()
	storetest.Await(t, "admitted calls", func() error {
		if l.admitted.Load() < n {
			return fmt.Errorf("there are %d of %d", l.admitted.Load(), n)
		}
		return nil
	})
}

// end waits until each caller was denied.
func (l *serviceLoad) end(t *testing.T) (admitted, failed int64) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		l.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(storetest.Patience):
		require.Fail(t, "the callers are not denied", "%d admitted, %d failed", l.admitted.Load(), l.failed.Load())
	}
	return l.admitted.Load(), l.failed.Load()
}

// TestEnvoyCallersGetTheLimitExactly: without a fault, as many calls of 64 callers are admitted as the limit says.
func TestEnvoyCallersGetTheLimitExactly(t *testing.T) {
	skipShort(t)
	o, addr := serviceNode(t)
	storetest.Cellserver(t, storetest.Engine{}).Single(t, o)
	admitted, failed := startServiceLoad(t, addr).end(t)
	require.Equal(t, int64(serviceLimit), admitted)
	require.Zero(t, failed)
}

// TestKilledServersAdmitNoEnvoyCallTwice kills a server with appendfsync always several times while 64 callers call it. What a caller
// was told is in the log: no more is admitted than the limit. What is missing to the limit are calls that got no answer.
func TestKilledServersAdmitNoEnvoyCallTwice(t *testing.T) {
	skipShort(t)
	o, addr := serviceNode(t, "--appendonly", "yes", "--appendfsync", "always")
	node := storetest.Cellserver(t, storetest.Engine{}).Single(t, o)
	l := startServiceLoad(t, addr)
	kills := scaled(4, 40)
	for i := range kills {
		l.awaitAdmitted(t, int64(serviceLimit*(i+1)/(kills+2)))
		node.Restart()
	}
	admitted, failed := l.end(t)
	t.Logf("%d kills: %d of %d admitted, %d calls failed", kills, admitted, serviceLimit, failed)
	require.LessOrEqual(t, admitted, int64(serviceLimit))
	require.GreaterOrEqual(t, admitted+failed, int64(serviceLimit))
}

// TestFailoversAdmitNoEnvoyCallTwice kills primaries with repl-ack-replies 1 while 64 callers call the node that their health check
// finds, and promotes the replica.
func TestFailoversAdmitNoEnvoyCallTwice(t *testing.T) {
	skipShort(t)
	e := storetest.Cellserver(t, storetest.Engine{})
	acks := []string{"--repl-ack-replies", "1", "--repl-ack-timeout", "500"}
	one, oneAddr := serviceNode(t, acks...)
	other, otherAddr := serviceNode(t, acks...)
	primary := e.Single(t, one)
	replica := e.Replica(t, other, primary, "")
	l := startServiceLoad(t, oneAddr, otherAddr)
	kills := scaled(3, 30)
	for i := range kills {
		l.awaitAdmitted(t, int64(serviceLimit*(i+1)/(kills+2)))
		primary.Kill()
		replica.Do("REPLICAOF", "NO", "ONE")
		primary.Follow(replica)
		primary.AwaitReady()
		primary.AwaitLink()
		primary, replica = replica, primary
	}
	admitted, failed := l.end(t)
	t.Logf("%d kills: %d of %d admitted, %d calls failed", kills, admitted, serviceLimit, failed)
	require.LessOrEqual(t, admitted, int64(serviceLimit))
	require.GreaterOrEqual(t, admitted+failed, int64(serviceLimit))
}

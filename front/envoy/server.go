package envoy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/cellserver/cellserver/front/descriptors"
	"github.com/cellserver/cellserver/rls/wire"
	"github.com/cellserver/cellserver/transport/direct"
)

var _ Caller = (*direct.Conn)(nil)

// Caller runs commands of one client of the server: see [direct.Conn].
type Caller interface {
	descriptors.Caller
	// Close ends the client.
	Close()
}

// Connection describes a connection to the port.
type Connection struct {
	Remote, Local net.Addr
	// TLS is the state of the connection, or nil without TLS.
	TLS *tls.ConnectionState
	// Hangup closes the connection. Any goroutine may call it.
	Hangup func()
}

// Config has the parts of the server that the port needs.
type Config struct {
	// Service answers the requests.
	Service *descriptors.Service
	// Open returns the client of a connection. Its errors are those of Open of a [direct.Transport].
	Open func(c Connection) (Caller, error)
	// TLS is nil for a port without TLS.
	TLS *tls.Config
	// Ready returns "" if the service can answer, and otherwise the reason. Any goroutine may call it.
	Ready func() string
	// MaxAge is the time after which a connection is asked to end, up to a tenth earlier or later; 0 means never.
	MaxAge time.Duration
	// MaxConnections is the maximum number of open connections, at least 1. Further ones wait.
	MaxConnections int
}

// These are the bounds of connections. Frames, CONTINUATION frames, resets and pings are bounded by grpc-go.
const (
	maxStreams   = 1000
	maxHeaders   = 16 << 10
	handshake    = 5 * time.Second
	minPing      = 10 * time.Second
	maxAgeLinger = 10 * time.Second
	// messageTime is the time in which the message of a call has to come, or its connection is closed. A call without a
	// message keeps memory.
	messageTime = 10 * time.Second
	// streamWorkers is the number of goroutines that are kept for calls, with stacks that have grown for them. Further calls
	// get goroutines of their own.
	streamWorkers = 64
	// maxIdle is the time after which a connection without calls is asked to end, and pingAfter that after which a silent peer
	// is asked whether it is there. It has pingTime to answer.
	maxIdle   = 2 * time.Minute
	pingAfter = time.Minute
	pingTime  = 20 * time.Second
	// healthPeriod is the time between two looks at Config.Ready for the calls of Watch.
	healthPeriod = 250 * time.Millisecond
)

// Server serves the ports. [New] makes one.
type Server struct {
	config Config
	grpc   *grpc.Server
	health *healthServer
	// messages has the messages of calls that have ended.
	messages sync.Pool // of *message

	ending sync.Once
	end    chan struct{}
	ended  sync.WaitGroup
}

// New returns a server that accepts no connection before Serve.
func New(c Config) *Server {
	s := &Server{config: c, health: &healthServer{Server: health.NewServer(), ready: c.Ready}, end: make(chan struct{})}
	s.messages.New = s.newMessage
	s.grpc = grpc.NewServer(
		grpc.Creds(&credentialsOf{s}),
		grpc.ForceServerCodecV2(codec{}),
		grpc.MaxRecvMsgSize(2*wire.MaxRequest), // a request up to this size gets an error that says what its bound is
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.ConnectionTimeout(handshake),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: maxIdle, MaxConnectionAge: c.MaxAge, MaxConnectionAgeGrace: maxAgeLinger, Time: pingAfter, Timeout: pingTime,
		}),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
	)
	s.grpc.RegisterService(&service, s)
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	s.health.look()
	s.ended.Go(s.watch)
	return s
}

// watch tells the calls of Watch of the state of the service, until Shutdown.
func (s *Server) watch() {
	tick := time.NewTicker(healthPeriod)
	defer tick.Stop()
	for {
		select {
		case <-s.end:
			return
		case <-tick.C:
			s.health.look()
		}
	}
}

// Serve accepts connections from l until Shutdown, after which it returns nil. It owns l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(netutil.LimitListener(l, s.config.MaxConnections)); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err //nolint:wrapcheck // the error of the listener
	}
	return nil
}

// Shutdown says that the service is not serving, accepts no further connections and calls, and waits for the calls that run.
// If ctx ends before, it closes the connections.
func (s *Server) Shutdown(ctx context.Context) {
	s.health.Shutdown()
	s.ending.Do(func() { close(s.end) })
	done := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.grpc.Stop()
		<-done
	}
	s.ended.Wait()
}

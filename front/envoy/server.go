package envoy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/cellserver/cellserver/front/descriptors"
	"github.com/cellserver/cellserver/front/drain"
	"github.com/cellserver/cellserver/rls/wire"
)

// Caller runs commands of one client of the server: see [direct.Conn].
type Caller interface {
	descriptors.Caller
	// Login logs the client in as the user of a connection with the given TLS state; nil means without TLS. It is
	// called before the first Do and, after an error, before the next Do. The error is shown to the client.
	Login(is *tls.ConnectionState) error
	// Touch notes that the client is active, though it calls nothing. Any goroutine may call it.
	Touch()
	// Close ends the client.
	Close()
}

// Connection describes a connection to the port.
type Connection struct {
	Remote, Local net.Addr
	// Hangup closes the connection. Any goroutine may call it.
	Hangup func()
	// Kept returns the number of bytes that the connection takes in addition to its client. Any goroutine may call it.
	Kept func() int64
}

// Config has the parts of the server that the port needs.
type Config struct {
	// Service answers the requests.
	Service *descriptors.Service
	// Open returns the client of a connection that was accepted. It returns the errors of Open of a [direct.Transport];
	// then the connection is closed.
	Open func(c Connection) (Caller, error)
	// TLS is the configuration for TLS; nil means that the port does not use TLS.
	TLS *tls.Config
	// Ready returns "" if the service can answer, and otherwise the reason. Any goroutine may call it.
	Ready func() string
	// MaxAge is the age, give or take a tenth, at which the server asks a connection to end; 0 means never.
	MaxAge time.Duration
}

// These are the bounds of connections. grpc-go itself bounds CONTINUATION frames and pings.
const (
	maxStreams = 250
	// maxWatches is the maximum number of running calls of Watch on a connection, because these
	// calls do not end by themselves.
	maxWatches = 8
	// window is the number of bytes of a call that a peer may send before the server reads them. It is the minimum of
	// grpc-go, which by default would choose a larger window, and so take more memory for each call, if the peer is
	// fast.
	window = 64 << 10
	// readBuffer is the size of the read buffer of each connection, in bytes.
	readBuffer   = 8 << 10
	maxHeaders   = 16 << 10
	handshake    = 5 * time.Second
	minPing      = 10 * time.Second
	maxAgeLinger = 10 * time.Second
	// messageTime is the time in which the message of a call has to arrive, because a call without a message keeps
	// memory. After it, the connection is closed.
	messageTime = 10 * time.Second
	// streamWorkers is the number of goroutines that are kept for calls, so that their stacks need not grow again.
	// Further calls get new goroutines.
	streamWorkers = 64
	// maxIdle is the time after which a connection without calls is asked to end. pingAfter is the time after which a
	// silent peer gets a ping, which it has to answer within pingTime.
	maxIdle   = 2 * time.Minute
	pingAfter = time.Minute
	pingTime  = 20 * time.Second
	// healthPeriod is the time between two looks at Config.Ready for the calls of Watch.
	healthPeriod = 250 * time.Millisecond
)

// Server serves the port of the rate limit service. [New] makes one.
type Server struct {
	config Config
	grpc   *grpc.Server
	health *healthServer
	// messages has unused messages, for reuse.
	messages sync.Pool // values of type *message

	ending sync.Once
	end    chan struct{}
	ended  sync.WaitGroup

	calls drain.Calls // those of the rate limit service

	mu   sync.Mutex
	open map[*connection]struct{} // the open connections; guarded by mu
}

// New returns a server that accepts no connection before Serve.
func New(c Config) *Server {
	s := &Server{
		config: c, health: &healthServer{Server: health.NewServer(), ready: c.Ready}, end: make(chan struct{}),
		open: make(map[*connection]struct{}),
	}
	s.messages.New = s.newMessage
	s.grpc = grpc.NewServer(
		grpc.Creds(&credentialsOf{s}),
		grpc.ForceServerCodecV2(codec{}),
		grpc.MaxRecvMsgSize(2*wire.MaxRequest), // a larger request up to this size still gets an error that names the bound
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.ReadBufferSize(readBuffer),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.ConnectionTimeout(handshake),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: maxIdle, MaxConnectionAge: c.MaxAge, MaxConnectionAgeGrace: maxAgeLinger, Time: pingAfter, Timeout: pingTime,
		}),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.InTapHandle(begun),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
	)
	for i := range services {
		s.grpc.RegisterService(&services[i], s)
	}
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	s.health.look()
	s.ended.Go(s.watch)
	return s
}

// healthPath begins the names of the methods of the health service.
const healthPath = "/grpc.health.v1.Health/"

// admit opens the client of a connection. It returns false if the server refuses the client.
func (s *Server) admit(c *connection) bool {
	c.client.meter.begin()
	c.client.hangup = func() { _ = c.Conn.Close() }
	opened, err := s.config.Open(Connection{
		Remote: c.RemoteAddr(), Local: c.LocalAddr(), Hangup: c.client.hangup, Kept: c.client.kept,
	})
	if err != nil {
		return false
	}
	c.client.caller = opened
	s.mu.Lock()
	s.open[c] = struct{}{}
	s.mu.Unlock()
	return true
}

func (s *Server) forget(c *connection) {
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
}

// begun looks at a call that a peer begins: it bounds the calls of the health service, and counts the header fields.
func begun(ctx context.Context, call *tap.Info) (context.Context, error) {
	by := peerOf(ctx)
	bound, err := by.bound(ctx, call.FullMethodName)
	if err != nil {
		return ctx, err
	}
	if full := by.meter.begun(ctx, call.Header); full != nil {
		return ctx, status.Error(codes.ResourceExhausted, full.Error())
	}
	return bound, nil
}

// bound bounds the number of calls of Watch, which have no end, and the time of other calls of the health service. A client is
// active when it makes such a call, and while a call of Watch runs. The messages of the rate limit service have timers of their own,
// because a context for each call takes about as much as the rest of the call.
func (c *client) bound(ctx context.Context, method string) (context.Context, error) {
	if !strings.HasPrefix(method, healthPath) {
		return ctx, nil
	}
	if method == grpc_health_v1.Health_Watch_FullMethodName {
		if c.watches.Add(1) > maxWatches {
			c.watches.Add(-1)
			return ctx, status.Errorf(codes.ResourceExhausted, "a connection has at most %d calls of Watch", maxWatches)
		}
		c.touch()
		context.AfterFunc(ctx, func() { c.watches.Add(-1) })
		return ctx, nil
	}
	c.touch()
	bound, cancel := context.WithTimeout(ctx, messageTime)
	context.AfterFunc(ctx, cancel) // ctx ends together with the call
	return bound, nil
}

// watch tells the calls of Watch of the state of the service, until Shutdown. Their clients are active meanwhile.
func (s *Server) watch() {
	tick := time.NewTicker(healthPeriod)
	defer tick.Stop()
	for {
		select {
		case <-s.end:
			return
		case <-tick.C:
			s.health.look()
			s.touchWatching()
		}
	}
}

func (s *Server) touchWatching() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		if c.client.watches.Load() > 0 {
			c.client.touch()
		}
	}
}

// Serve accepts connections from l until Shutdown, after which it returns nil. It owns l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(&accept{l, s}); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err //nolint:wrapcheck // the error of the listener
	}
	return nil
}

// Shutdown says that the service is not serving, accepts no further connections and calls, and waits for the calls that run.
// It closes the connections of peers that have no call for a second and do not end them, or if ctx ends before.
func (s *Server) Shutdown(ctx context.Context) {
	s.health.Shutdown()
	s.ending.Do(func() { close(s.end) })
	ctx, stop := s.calls.Context(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	s.hangUp()
	s.grpc.Stop()
	<-done
	s.ended.Wait()
}

// hangUp closes all connections, also those in a handshake, for which grpc-go would wait.
func (s *Server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Conn.Close()
	}
}

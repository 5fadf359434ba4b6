package envoy

import (
	"net"
	"sync"
	"time"
)

// These are the bounds of the resources of a connection.
const (
	// maxKept is the maximum memory in bytes of the calls that a peer has begun and not finished; beyond it, the
	// connection is closed. It is also the maximum memory of the calls that run and of the answers that the peer has
	// not read; beyond it, a call is refused.
	maxKept = 8 << 20
	// idleKept is the memory that a connection without calls takes, in bytes.
	idleKept = 32 << 10
	// writeTime is the maximum time in which a peer has to accept the bytes of one write.
	writeTime = 20 * time.Second
	// maxBehind is the maximum number of bytes that are read from a peer while it does not accept the bytes of a write.
	// It bounds the answers to control frames that grpc-go keeps.
	maxBehind = 64 << 10
)

// connection is an accepted connection, together with the state of its client.
type connection struct {
	net.Conn
	of     *Server
	client client
	closed sync.Once
}

// accept is a listener that makes a client of each connection that it accepts.
type accept struct {
	net.Listener
	of *Server
}

// Accept implements [net.Listener]. A connection that the server refuses is closed.
func (l *accept) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // grpc-go compares it
		}
		c := &connection{Conn: raw, of: l.of}
		if l.of.admit(c) {
			return c, nil
		}
		_ = raw.Close() // no reply can be sent before a call
	}
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.closed.Do(func() {
		c.of.forget(c)
		c.client.close()
	})
	return c.Conn.Close()
}

// guarded is the connection that grpc-go uses, inside of TLS. It bounds the memory that the peer
// can make grpc-go keep.
type guarded struct {
	net.Conn
	client *client

	mu      sync.Mutex // mu guards the fields below
	written sync.Cond  // signals, with mu, the end of a write or of the connection
	writing bool
	behind  int // number of bytes that were read since the present write began
	closed  bool
}

func guard(conn net.Conn, of *client) *guarded {
	g := &guarded{Conn: conn, client: of}
	g.written.L = &g.mu
	return g
}

// Read implements [net.Conn].
func (g *guarded) Read(b []byte) (int, error) {
	g.mu.Lock()
	for g.writing && g.behind >= maxBehind && !g.closed {
		g.written.Wait()
	}
	g.mu.Unlock()
	n, err := g.Conn.Read(b)
	g.mu.Lock()
	g.behind += n
	g.mu.Unlock()
	if full := g.client.meter.received(b[:n]); full != nil {
		return 0, full
	}
	return n, err //nolint:wrapcheck // grpc-go compares it
}

// Write implements [net.Conn]. Only one goroutine writes.
func (g *guarded) Write(b []byte) (int, error) {
	g.mu.Lock()
	g.writing, g.behind = true, 0
	g.mu.Unlock()
	g.client.meter.sent(b)
	_ = g.Conn.SetWriteDeadline(time.Now().Add(writeTime)) //nolint:forbidigo // a deadline of the network; an error means that the connection is closed
	n, err := g.Conn.Write(b)
	g.mu.Lock()
	g.writing = false
	g.written.Broadcast()
	g.mu.Unlock()
	return n, err //nolint:wrapcheck // grpc-go compares it
}

// Close implements [net.Conn].
func (g *guarded) Close() error {
	g.mu.Lock()
	g.closed = true
	g.written.Broadcast()
	g.mu.Unlock()
	return g.Conn.Close() //nolint:wrapcheck // a wrapper
}

package listen

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// Connections bounds the number of open connections of an HTTP server. When there are too many, it closes the
// connection that has been without a running handler for the longest time. So clients that send
// their requests slowly cannot keep out clients that send them at once.
type Connections struct {
	most int
	mu   sync.Mutex
	open map[net.Conn]*connection // guarded by mu
	next uint64                   // guarded by mu: the number of events so far, which orders them
}

type connection struct {
	net.Conn
	all     *Connections
	serving int    // guarded by all.mu: the number of running handlers for requests of the connection
	since   uint64 // guarded by all.mu: the value of all.next when serving last changed
}

// NewConnections returns the connections of a server that has at most so many.
func NewConnections(most int) *Connections {
	return &Connections{most: most, open: make(map[net.Conn]*connection)}
}

// Bound returns a listener that accepts the connections of l, and closes connections beyond the
// maximum.
func (cs *Connections) Bound(l net.Listener) net.Listener { return &boundListener{l, cs} }

type boundListener struct {
	net.Listener
	all *Connections
}

// Accept implements net.Listener.
func (l *boundListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // package http compares it
		}
		if c := l.all.admit(conn); c != nil {
			return c, nil
		}
		_ = conn.Close() // there is no room, and no reply can be sent yet
	}
}

// admit counts conn, and closes the longest idle connection if there are too many. It returns nil
// if there are too many and all of them have a running handler.
func (cs *Connections) admit(conn net.Conn) *connection {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.open) >= cs.most {
		out := cs.longestIdle()
		if out == nil {
			return nil
		}
		delete(cs.open, out)
		_ = out.Conn.Close()
	}
	cs.next++
	c := &connection{Conn: conn, all: cs, since: cs.next}
	cs.open[c] = c
	return c
}

// longestIdle returns the connection that has been without a running handler for longest; nil if
// all have one. cs.mu is held.
func (cs *Connections) longestIdle() (out *connection) {
	for _, c := range cs.open {
		if c.serving == 0 && (out == nil || c.since < out.since) {
			out = c
		}
	}
	return out
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.Conn.Close() //nolint:wrapcheck // a wrapper
}

// connectionKey is the key of a request's connection in the context of the request.
type connectionKey struct{}

// Context is for http.Server.ConnContext. It stores the connection, without TLS, for Serving.
func (cs *Connections) Context(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// Serving records that a handler for the connection in ctx begins to run if yes is true, and
// otherwise that it has ended.
func (cs *Connections) Serving(ctx context.Context, yes bool) {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return // a request of a test
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.next++
	c.since = cs.next
	if yes {
		c.serving++
	} else {
		c.serving--
	}
}

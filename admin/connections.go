package admin

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// connections bounds the number of open connections. When there are too many, it closes the
// connection that has been without a running handler for the longest time. So clients that send
// their requests slowly cannot keep out clients that send them at once.
type connections struct {
	most int
	mu   sync.Mutex
	open map[net.Conn]*connection // guarded by mu
	next uint64                   // guarded by mu: the number of events so far, which orders them
}

type connection struct {
	net.Conn
	all     *connections
	serving bool   // guarded by all.mu: a handler is running for a request of it
	since   uint64 // guarded by all.mu: the value of all.next when serving last changed
}

func newConnections(most int) *connections {
	return &connections{most: most, open: make(map[net.Conn]*connection)}
}

func (cs *connections) bound(l net.Listener) net.Listener { return &boundListener{l, cs} }

type boundListener struct {
	net.Listener
	all *connections
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
func (cs *connections) admit(conn net.Conn) *connection {
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
func (cs *connections) longestIdle() (out *connection) {
	for _, c := range cs.open {
		if !c.serving && (out == nil || c.since < out.since) {
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

// context implements http.Server.ConnContext. It stores the connection, without TLS, for serving.
func (cs *connections) context(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// serving notes that a handler for the connection in ctx begins to run, if yes is true, or that it
// ends.
func (cs *connections) serving(ctx context.Context, yes bool) {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return // a request of a test
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.next++
	c.serving, c.since = yes, cs.next
}

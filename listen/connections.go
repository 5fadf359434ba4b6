package listen

import (
	"container/list"
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
	open list.List // guarded by mu: of *connection, in the order of the latest event of each
}

type connection struct {
	net.Conn
	all     *Connections
	serving int           // guarded by all.mu: the number of running handlers for requests of the connection
	place   *list.Element // in all.open; it does not change
}

// NewConnections returns the connections of a server that has at most so many. 0 means no maximum.
func NewConnections(most int) *Connections { return &Connections{most: most} }

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
		_ = conn.Close() // there is no room for the connection, and no reply can be sent yet
	}
}

// admit counts conn, and closes the longest idle connection if there are too many. It returns nil
// if there are too many and all of them have a running handler.
func (cs *Connections) admit(conn net.Conn) *connection {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.most > 0 && cs.open.Len() >= cs.most {
		out := cs.takeIdle()
		if out == nil {
			return nil
		}
		_ = out.Conn.Close()
	}
	c := &connection{Conn: conn, all: cs}
	c.place = cs.open.PushBack(c)
	return c
}

// CloseIdle closes the connection that has been without a running handler for the longest time. It returns false if there is none.
// Any goroutine may call it.
func (cs *Connections) CloseIdle() bool {
	cs.mu.Lock()
	out := cs.takeIdle()
	cs.mu.Unlock()
	if out == nil {
		return false
	}
	_ = out.Conn.Close()
	return true
}

// takeIdle removes and returns the connection that has been without a running handler for longest; nil if
// all have one. cs.mu is held.
func (cs *Connections) takeIdle() *connection {
	for e := cs.open.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*connection); c.serving == 0 {
			cs.open.Remove(e)
			return c
		}
	}
	return nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.all.mu.Lock()
	c.all.open.Remove(c.place)
	c.all.mu.Unlock()
	return c.Conn.Close() //nolint:wrapcheck // a wrapper
}

// connectionKey is the key of a request's connection in the context of the request.
type connectionKey struct{}

// Context is a function for http.Server.ConnContext. It stores the connection, without TLS, for
// Serving.
func (cs *Connections) Context(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// Accepted returns the connection in ctx as the listener of [Connections.Bound] has accepted it; nil if there is none.
func Accepted(ctx context.Context) net.Conn {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
		return c.Conn
	}
	return nil
}

// Serving records that a handler for the connection in ctx begins to run if yes is true, and
// otherwise that it has ended.
func (cs *Connections) Serving(ctx context.Context, yes bool) {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return // the request was made by a test, without a connection
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.open.MoveToBack(c.place)
	if yes {
		c.serving++
	} else {
		c.serving--
	}
}

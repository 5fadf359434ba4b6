package web

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// connection has the callers that the requests of one HTTP connection use: one for each user. It is one of
// HTTP/1.1 or of HTTP/2, whose requests may run at once.
type connection struct {
	net.Conn
	mu      sync.Mutex
	callers map[string]Caller // guarded by mu: by the name of the user; nil after the connection was closed
}

// caller returns the caller of the user. It opens one by open if there is none.
func (c *connection) caller(user string, open func(Peer) (Caller, error)) (Caller, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.callers == nil {
		return nil, net.ErrClosed
	}
	if caller := c.callers[user]; caller != nil {
		return caller, nil
	}
	// If an operator kills a client, the server closes it. The HTTP client must notice this, so its
	// connection is closed, too.
	caller, err := open(Peer{Remote: c.RemoteAddr(), Local: c.LocalAddr(), User: user, Gone: func() { _ = c.Conn.Close() }})
	if err != nil {
		return nil, err //nolint:wrapcheck // a resp.Error
	}
	c.callers[user] = caller
	return caller, nil
}

// closed closes the callers. There are none from now on.
func (c *connection) closed() {
	c.mu.Lock()
	callers := c.callers
	c.callers = nil
	c.mu.Unlock()
	for _, caller := range callers {
		caller.Close()
	}
}

// connections are the open connections of a server.
type connections struct{ open sync.Map } // of *connection by net.Conn

// connectionKey is the key of a request's connection in the context of the request.
type connectionKey struct{}

// context returns a context for the requests of conn, which was accepted.
func (cs *connections) context(ctx context.Context, conn net.Conn) context.Context {
	c := &connection{Conn: conn, callers: map[string]Caller{}}
	cs.open.Store(conn, c)
	return context.WithValue(ctx, connectionKey{}, c)
}

// changed is for http.Server.ConnState.
func (cs *connections) changed(conn net.Conn, is http.ConnState) {
	if is != http.StateClosed {
		return
	}
	if c, ok := cs.open.LoadAndDelete(conn); ok {
		c.(*connection).closed()
	}
}

// connectionOf returns the connection of a request, which has come by a [Server].
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

package web

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// connection has the callers that the requests of one HTTP connection use: one for each user. It is one of
// HTTP/1.1 or of HTTP/2, whose requests may run at once.
type connection struct {
	net.Conn
	kept    atomic.Int64 // the bytes of its requests
	mu      sync.Mutex
	first   Caller            // guarded by mu: that of the connection, which has no user yet; nil if it has one
	callers map[string]Caller // guarded by mu: by the name of the user; nil after the connection was closed
}

// idleKept is the memory that a connection without requests takes, in bytes.
const idleKept = 24 << 10

// open opens a caller. The server closes a client that an operator has killed, and the client of HTTP has to notice.
func (c *connection) open(by func(Peer) (Caller, error), kept func() int64) (Caller, error) {
	return by(Peer{Remote: c.RemoteAddr(), Local: c.LocalAddr(), Gone: func() { _ = c.Conn.Close() }, Kept: kept})
}

// accepted opens the caller of the connection before it has a user.
func (c *connection) accepted(by func(Peer) (Caller, error)) (err error) {
	c.first, err = c.open(by, func() int64 { return idleKept + c.kept.Load() })
	return err
}

// caller returns the caller of the user. The first user gets that of the connection, and any other one that by opens.
func (c *connection) caller(user string, by func(Peer) (Caller, error)) (Caller, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.callers == nil {
		return nil, net.ErrClosed
	}
	if caller := c.callers[user]; caller != nil {
		return caller, nil
	}
	caller, err := c.first, error(nil)
	if caller == nil {
		if caller, err = c.open(by, nil); err != nil {
			return nil, err
		}
	}
	if err := caller.Login(user); err != nil {
		if caller != c.first {
			caller.Close()
		}
		return nil, err //nolint:wrapcheck // a resp.Error
	}
	c.first, c.callers[user] = nil, caller
	return caller, nil
}

// closed closes the callers. There are none from now on.
func (c *connection) closed() {
	c.mu.Lock()
	callers, first := c.callers, c.first
	c.callers, c.first = nil, nil
	c.mu.Unlock()
	if first != nil {
		first.Close()
	}
	for _, caller := range callers {
		caller.Close()
	}
}

// connections are the open connections of a server.
type connections struct{ open sync.Map } // of *connection by net.Conn

// connectionKey is the key of a request's connection in the context of the request.
type connectionKey struct{}

// context returns a context for the requests of conn, which was accepted. It closes conn if the server refuses a client for it.
func (cs *connections) context(ctx context.Context, conn net.Conn, by func(Peer) (Caller, error)) context.Context {
	c := &connection{Conn: conn, callers: map[string]Caller{}}
	if c.accepted(by) != nil {
		c.callers = nil
		_ = conn.Close() // no reply can be sent yet
		return context.WithValue(ctx, connectionKey{}, c)
	}
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

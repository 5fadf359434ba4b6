package web

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/listen"
)

// connection has the callers that the requests of one HTTP connection use: one for each user. It is one of
// HTTP/1.1 or of HTTP/2, whose requests may run at once.
type connection struct {
	net.Conn
	kept    atomic.Int64 // number of bytes that the requests of the connection take
	mu      sync.Mutex
	first   Caller            // the caller that was opened with the connection and has no user yet; nil once it has one; guarded by mu
	callers map[string]Caller // the caller of each user, by name; nil after the connection was closed; guarded by mu
}

// idleKept is the memory that a connection without requests takes, in bytes.
const idleKept = 24 << 10

// open opens a caller. The server closes a client that an operator has killed, and the client of HTTP has to notice.
func (c *connection) open(by func(Peer) (Caller, error), kept func() int64) (Caller, error) {
	return by(Peer{Remote: c.RemoteAddr(), Local: c.LocalAddr(), Gone: func() { _ = c.Conn.Close() }, Kept: kept})
}

// accept makes a client of each connection that a listener accepts.
type accept struct {
	net.Listener
	by func(Peer) (Caller, error)
}

// Accept implements [net.Listener]. A connection whose client the server refuses is closed.
func (l *accept) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // package http compares it
		}
		c := &connection{Conn: raw, callers: map[string]Caller{}}
		if c.first, err = c.open(l.by, func() int64 { return idleKept + c.kept.Load() }); err == nil {
			return c, nil
		}
		_ = raw.Close() // no reply can be sent yet
	}
}

// caller returns the caller of the user. The first user gets the caller that was opened with the connection, and every
// other user gets a caller that by opens.
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

// Close implements [net.Conn]. It closes the callers, too, and there are none from now on.
func (c *connection) Close() error {
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
	return c.Conn.Close() //nolint:wrapcheck // a wrapper
}

// connectionOf returns the connection of a request, which has come by a [Server].
func connectionOf(ctx context.Context) *connection {
	c, _ := listen.Accepted(ctx).(*connection)
	return c
}

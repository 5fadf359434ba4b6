package goroutine

import (
	"io"
	"net"
	"time"

	"github.com/cellserver/cellserver/transport/internal/base"
	"github.com/cellserver/cellserver/transport/internal/buffer"
)

// handshake is a connection before its TLS handshake. It implements [base.Handshaker].
type handshake struct {
	*conn
	next func()    // function that runs the connection after the handshake
	by   time.Time // deadline of the handshake; guarded by mu, as over is
	over bool
}

// Shorten implements [base.Handshaker].
func (x *handshake) Shorten(by time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	if x.by.IsZero() || by.Before(x.by) {
		x.by = by
	}
	_ = x.nc.SetDeadline(x.by) // fails only if the connection is closed
}

// end removes the deadline. Later calls of Shorten do nothing.
func (x *handshake) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	_ = x.nc.SetDeadline(time.Time{}) // fails only if the connection is closed
}

// Handshake implements [base.Handshaker]. Only its deadline may interrupt a handshake: crypto/tls
// cannot continue an interrupted one, so the connection would be lost.
func (x *handshake) Handshake(by time.Time) {
	x.Shorten(by)
	secure := x.secure()
	if err := secure.Handshake(); err != nil {
		base.LogHandshake(x.t.log, x.RemoteAddr(), err)
		if why := base.Explanation(x.t.h, err); why != nil {
			x.end()
			go x.explain(why)
			return
		}
		x.GiveUp()
		return
	}
	x.end()
	base.Identify(x.session, secure)
	go x.next()
}

// GiveUp implements [base.Handshaker].
func (x *handshake) GiveUp() {
	x.session.Closed()
	x.Abort()
	x.t.unregister(x.conn)
}

// explain sends why to a client that does not speak TLS, waits until the client has read it, and
// closes the connection. If too many connections linger already, it closes the connection at once.
func (x *handshake) explain(why []byte) {
	x.session.Closed()
	defer x.t.unregister(x.conn)
	defer x.Abort()
	defer x.t.lingering.Add(-1)
	if x.t.lingering.Add(1) > base.MaxLingering {
		return
	}
	nc, ok := rawConn(x.nc).(interface {
		net.Conn
		CloseWrite() error
	})
	if !ok {
		return
	}
	patience := x.t.lim.Load().Linger
	if x.t.stopping() {
		patience = base.StopLinger
	}
	_ = nc.SetDeadline(time.Now().Add(patience)) // on a closed connection the copy below fails too
	if _, err := nc.Write(why); err == nil && nc.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, nc, base.LingerBytes) // reads until the peer has closed the connection, too
	}
}

// rawConn returns the connection below TLS, or nc.
func rawConn(nc net.Conn) net.Conn {
	if over, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = over.NetConn()
	}
	if m, ok := nc.(*buffer.MeasuredConn); ok {
		nc = m.Conn
	}
	return nc
}

// tlsRoom returns the size of the buffer that TLS reads into, 0 without TLS.
func tlsRoom(nc net.Conn) int64 {
	if over, ok := nc.(interface{ NetConn() net.Conn }); ok {
		if m, ok := over.NetConn().(*buffer.MeasuredConn); ok {
			return m.Room.Load()
		}
	}
	return 0
}

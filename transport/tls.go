package transport

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// TLSListener is a listener whose clients speak TLS. Every transport serves it; others,
// such as net/http, can use it as any listener, since what it accepts is a [tls.Conn].
type TLSListener struct {
	net.Listener
	config func() *tls.Config
}

// NewTLSListener makes the clients of l speak TLS. config is asked for each connection,
// from any goroutine. A configuration that replaces another has to be a new one: a clone
// has the ticket keys of its original, so old tickets would pass a changed authority.
func NewTLSListener(l net.Listener, config func() *tls.Config) *TLSListener {
	return &TLSListener{l, config}
}

// Accept implements [net.Listener]. It does not wait for the handshake.
func (l *TLSListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tls.Server(&measured{Conn: nc}, l.config()), nil
}

// Handshaken is a [Session] that wants to know who its client is.
type Handshaken interface {
	// Handshaken is told what the handshake of a connection with TLS found out, before the
	// first Feed.
	Handshaken(is *tls.ConnectionState)
}

// Explainer is a [Handler] that has something to say to clients that do not speak TLS on
// a port that expects it.
type Explainer interface {
	// ExplainTLS returns what such a client is sent before its connection is closed.
	ExplainTLS() []byte
}

// identify tells s, if it wants to know.
func identify(s Session, conn *tls.Conn) {
	if h, ok := s.(Handshaken); ok {
		is := conn.ConnectionState()
		h.Handshaken(&is)
	}
}

// explanation is what h says to a client whose handshake failed with err, nil unless the
// client does not speak TLS.
func explanation(h Handler, err error) []byte {
	var header tls.RecordHeaderError
	if e, ok := h.(Explainer); ok && errors.As(err, &header) && header.Conn != nil {
		return e.ExplainTLS()
	}
	return nil
}

// maxReason is how much of the reason for a failed handshake is logged. The client has a
// part in what it says.
const maxReason = 200

// logHandshake logs a failed handshake. Who connects and leaves is no news: programs that
// watch ports do so.
func logHandshake(log *slog.Logger, from net.Addr, err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.ECONNRESET) {
		log.Debug("a TLS handshake was not completed", "client", from.String())
		return
	}
	why := err.Error()
	if len(why) > maxReason {
		why = why[:maxReason] + "..."
	}
	log.Info("a TLS handshake failed", "client", from.String(), "error", why)
}

// measured is a connection below TLS that knows how large the buffer is that TLS reads
// into, since the whole rest of that is offered to each Read.
type measured struct {
	net.Conn
	room atomic.Int64
}

// Read implements [net.Conn].
func (m *measured) Read(p []byte) (int, error) {
	if n := int64(len(p)); n > m.room.Load() {
		m.room.Store(n)
	}
	return m.Conn.Read(p)
}

// rawConn returns the connection below TLS, or nc.
func rawConn(nc net.Conn) net.Conn {
	if over, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = over.NetConn()
	}
	if m, ok := nc.(*measured); ok {
		nc = m.Conn
	}
	return nc
}

// tlsRoom returns the size of the buffer that TLS reads into, 0 without TLS.
func tlsRoom(nc net.Conn) int64 {
	if over, ok := nc.(interface{ NetConn() net.Conn }); ok {
		if m, ok := over.NetConn().(*measured); ok {
			return m.room.Load()
		}
	}
	return 0
}

// errWouldBlock is what an event loop's connection says to crypto/tls when there is
// nothing to read: crypto/tls keeps its state after an error that is Temporary, and only
// then. It relies on that for deadlines too. During a handshake no error is.
var errWouldBlock net.Error = wouldBlock{}

type wouldBlock struct{}

// Error implements error.
func (wouldBlock) Error() string { return "transport: nothing to read" }

// Timeout implements [net.Error].
func (wouldBlock) Timeout() bool { return true }

// Temporary implements [net.Error].
func (wouldBlock) Temporary() bool { return true }

// longAgo is a deadline that has passed.
func longAgo() time.Time { return time.Unix(1, 0) }

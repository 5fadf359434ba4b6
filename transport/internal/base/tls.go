package base

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"

	"github.com/cellserver/cellserver/transport"
)

// Identify passes the state of the TLS connection to s, if s is a [transport.Handshaken].
func Identify(s transport.Session, conn *tls.Conn) {
	if h, ok := s.(transport.Handshaken); ok {
		is := conn.ConnectionState()
		h.Handshaken(&is)
	}
}

// Explanation returns the message of h for a client whose handshake failed with err. It returns nil
// if the client speaks TLS, or if h is no [transport.Explainer].
func Explanation(h transport.Handler, err error) []byte {
	var header tls.RecordHeaderError
	if e, ok := h.(transport.Explainer); ok && errors.As(err, &header) && header.Conn != nil {
		return e.ExplainTLS()
	}
	return nil
}

// maxReason is the maximum number of bytes of an error that are logged, because the client can
// influence its text.
const maxReason = 200

// LogHandshake logs a failed handshake: at level debug if the connection ended or timed out before
// the handshake was complete, as with programs that monitor ports, and at level info otherwise.
func LogHandshake(log *slog.Logger, from net.Addr, err error) {
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

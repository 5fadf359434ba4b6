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

// Identify tells s, if it wants to know.
func Identify(s transport.Session, conn *tls.Conn) {
	if h, ok := s.(transport.Handshaken); ok {
		is := conn.ConnectionState()
		h.Handshaken(&is)
	}
}

// Explanation is what h says to a client whose handshake failed with err, nil unless the
// client does not speak TLS.
func Explanation(h transport.Handler, err error) []byte {
	var header tls.RecordHeaderError
	if e, ok := h.(transport.Explainer); ok && errors.As(err, &header) && header.Conn != nil {
		return e.ExplainTLS()
	}
	return nil
}

// maxReason is how much of the reason for a failed handshake is logged. The client has a
// part in what it says.
const maxReason = 200

// LogHandshake logs a failed handshake. A client that connects and leaves is logged at
// level debug only: programs that watch ports do so.
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

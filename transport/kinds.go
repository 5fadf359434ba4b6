package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
)

// ErrClosed is returned by Serve once Shutdown has begun.
var ErrClosed = errors.New("transport: closed")

// Transport accepts connections and moves their bytes. Its methods may be called
// from any goroutine.
type Transport interface {
	// Serve accepts from l until Shutdown, which makes it return nil. It owns l from
	// the start and closes it, whatever it returns; a closed l is an error. Several
	// listeners may be served at once.
	Serve(l net.Listener) error
	// Shutdown stops accepting, lets every connection finish its Feed, what its
	// session still has to do with bytes already received, and its write, closes it
	// and waits for every goroutine. When ctx ends first, what is left is cut and the
	// error of ctx is returned. A later call with an ended ctx cuts an earlier one short.
	Shutdown(ctx context.Context) error
	// SetLimits replaces the limits, of live connections too; KeepAlive counts for
	// new ones only.
	SetLimits(lim Limits)
	// Stats adds up the counters of all connections.
	Stats() Stats
}

// Kind names a way of moving bytes.
type Kind string

// The kinds of transport. Auto is the event loop where the system has one.
const (
	KindAuto      Kind = "auto"
	KindEpoll     Kind = "epoll"
	KindGoroutine Kind = "goroutine"
)

// Resolve returns the kind that New makes of k on this system: only Auto changes.
func (k Kind) Resolve() Kind {
	switch {
	case k != KindAuto:
		return k
	case haveEpoll:
		return KindEpoll
	}
	return KindGoroutine
}

// New makes the transport that kind names. loops is the number of event loops and
// means nothing to goroutines. It fails where the system lacks the kind.
func New(kind Kind, h Handler, lim Limits, loops int, log *slog.Logger) (Transport, error) {
	switch kind.Resolve() {
	case KindGoroutine:
		return NewGoroutine(h, lim, log), nil
	case KindEpoll:
		return newEpoll(h, lim, loops, log)
	default:
		return nil, fmt.Errorf("transport: unknown kind %q", kind)
	}
}

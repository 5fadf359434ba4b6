package transport

import (
	"fmt"
	"log/slog"
)

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

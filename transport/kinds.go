package transport

import "runtime"

// Kind is the name of a kind of transport.
type Kind string

// These are the kinds of transport. KindAuto stands for KindEpoll on Linux and for KindGoroutine
// elsewhere.
const (
	KindAuto      Kind = "auto"
	KindEpoll     Kind = "epoll"
	KindGoroutine Kind = "goroutine"
)

// Resolve returns the kind that k stands for on this system: it replaces only KindAuto.
func (k Kind) Resolve() Kind {
	switch {
	case k != KindAuto:
		return k
	case runtime.GOOS == "linux":
		return KindEpoll
	}
	return KindGoroutine
}

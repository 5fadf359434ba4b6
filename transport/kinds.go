package transport

import "runtime"

// Kind names a way of moving bytes.
type Kind string

// The kinds of transport. Auto is the event loop where the system has one.
const (
	KindAuto      Kind = "auto"
	KindEpoll     Kind = "epoll"
	KindGoroutine Kind = "goroutine"
)

// Resolve returns the kind that k stands for on this system: only Auto changes.
func (k Kind) Resolve() Kind {
	switch {
	case k != KindAuto:
		return k
	case runtime.GOOS == "linux":
		return KindEpoll
	}
	return KindGoroutine
}

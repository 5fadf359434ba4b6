package base

import (
	"time"

	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// WithDefaults returns l with the defaults in place of those values of Backlog, MaxInput, Chunk,
// Linger and Handshake that are not positive.
func WithDefaults(l transport.Limits) *transport.Limits {
	d := transport.DefaultLimits()
	for _, size := range []struct {
		value *int
		or    int
	}{{&l.Backlog, d.Backlog}, {&l.MaxInput, d.MaxInput}, {&l.Chunk, d.Chunk}} {
		if *size.value <= 0 {
			*size.value = size.or
		}
	}
	if l.Linger <= 0 {
		l.Linger = d.Linger
	}
	if l.Handshake <= 0 {
		l.Handshake = d.Handshake
	}
	return &l
}

// PressedShare is the divisor of the write timeout while the handler is short of memory: see
// [transport.Pressed].
const PressedShare = 4

// Pressed reports whether h is short of memory for replies.
func Pressed(h transport.Handler) bool {
	p, ok := h.(transport.Pressed)
	return ok && p.Pressed()
}

// Settle returns the replies to send in place of out and refs when their outcome is known: what
// Settle of s returns if s is a [transport.Settler], and otherwise out and refs.
func Settle(s transport.Session, is transport.Outcome, out []byte, refs []shared.Ref) ([]byte, []shared.Ref) {
	if st, ok := s.(transport.Settler); ok {
		return st.Settle(is, out, refs)
	}
	return out, refs
}

// SweepEvery returns the time between two checks of write progress: an eighth of writeTimeout, at
// least 10 ms and at most 1 s. So a peer is closed that much after its timeout at the latest.
func SweepEvery(writeTimeout time.Duration) time.Duration {
	return min(max(writeTimeout/8, 10*time.Millisecond), time.Second)
}

package base

import (
	"time"

	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// WithDefaults returns l with sizes that a transport can work with.
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

// PressedShare is what part of the time for writing a peer has while its handler is
// pressed.
const PressedShare = 4

// Pressed reports whether h is.
func Pressed(h transport.Handler) bool {
	p, ok := h.(transport.Pressed)
	return ok && p.Pressed()
}

// Settle returns what is to be sent of out.
func Settle(s transport.Session, is transport.Outcome, out []byte, refs []shared.Ref) ([]byte, []shared.Ref) {
	if st, ok := s.(transport.Settler); ok {
		return st.Settle(is, out, refs)
	}
	return out, refs
}

// SweepEvery returns how often write progress is looked at: a peer is cut at most
// an eighth later than the limit says.
func SweepEvery(writeTimeout time.Duration) time.Duration {
	return min(max(writeTimeout/8, 10*time.Millisecond), time.Second)
}

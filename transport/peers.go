package transport

import (
	"time"

	"github.com/cellserver/cellserver/shared"
)

// sane returns l with sizes that a transport can work with.
func (l Limits) sane() *Limits {
	d := DefaultLimits()
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

// pressedShare is what part of the time for writing a peer has while its handler is
// pressed.
const pressedShare = 4

// pressed reports whether h is.
func pressed(h Handler) bool {
	p, ok := h.(Pressed)
	return ok && p.Pressed()
}

// settled returns what is to be sent of out.
func settled(s Session, is Outcome, out []byte, refs []shared.Ref) ([]byte, []shared.Ref) {
	if st, ok := s.(Settler); ok {
		return st.Settle(is, out, refs)
	}
	return out, refs
}

// sweepEvery returns how often write progress is looked at: a peer is cut at most
// an eighth later than the limit says.
func sweepEvery(writeTimeout time.Duration) time.Duration {
	return min(max(writeTimeout/8, 10*time.Millisecond), time.Second)
}

package transport

import "time"

// Limits bound the memory that a transport uses for one connection, and its timeouts. A size that
// is not positive means the default.
type Limits struct {
	// Backlog is the number of unsent bytes at which the transport stops reading input. It is also
	// the maximum number of unread bytes that are kept for a parked session.
	Backlog int
	// WriteTimeout closes a connection whose peer has accepted no byte for this time, or up to an
	// eighth longer. 0 means no timeout.
	WriteTimeout time.Duration
	// MaxInput is the maximum number of bytes of unconsumed input of a connection. A connection
	// whose session leaves this many bytes and asks for more is closed.
	MaxInput int
	// Chunk is the maximum number of bytes that are read from a socket before its session is fed.
	Chunk int
	// KeepAlive is the TCP keep-alive period; 0 turns it off.
	KeepAlive time.Duration
	// Linger is the maximum time for which a connection stays open after its session or a refusal
	// has ended it, so that the peer can read the last bytes. A value that is not positive means
	// the default.
	Linger time.Duration
	// Handshake is the timeout of a TLS handshake. While further clients wait for their handshake
	// to begin, the timeout is a fifth of Handshake. A value that is not positive means the
	// default.
	Handshake time.Duration
}

// DefaultLimits returns the limits that a server starts with.
func DefaultLimits() Limits {
	return Limits{
		Backlog:      256 << 10,
		WriteTimeout: 5 * time.Second,
		MaxInput:     2 << 20,
		Chunk:        64 << 10,
		KeepAlive:    300 * time.Second,
		Linger:       time.Second,
		Handshake:    5 * time.Second,
	}
}

// minHandshakes and handshakesPerLoop give the maximum number of handshakes that run at once:
// handshakesPerLoop for each event loop, and at least minHandshakes.
const (
	minHandshakes     = 64
	handshakesPerLoop = 8
)

// MaxHandshakes returns the maximum number of TLS handshakes that run at once in a transport with
// the given number of event loops; loops is 0 for a transport without. With event loops each
// running handshake uses a second descriptor.
func MaxHandshakes(loops int) int { return max(minHandshakes, handshakesPerLoop*loops) }

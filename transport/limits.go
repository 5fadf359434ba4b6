package transport

import "time"

// Limits bound the memory that a transport uses for one connection, and its timeouts. A size that
// is not positive means the default.
type Limits struct {
	// Backlog is the number of unsent bytes from which on input is not read any more. It also is
	// the number of unread bytes that are kept for a parked session.
	Backlog int
	// WriteTimeout closes a connection whose peer has accepted no byte for this time, or up to an
	// eighth longer. 0 means no timeout.
	WriteTimeout time.Duration
	// MaxInput is the most unconsumed input of a connection. A session that leaves this much and
	// asks for more is closed.
	MaxInput int
	// Chunk is the most bytes that are read from a socket before its session is fed.
	Chunk int
	// KeepAlive is the TCP keep-alive period; 0 turns it off.
	KeepAlive time.Duration
	// Linger is how long a connection that its session or a refusal has ended stays open, so that
	// its peer can read the last bytes. A value that is not positive means the default.
	Linger time.Duration
	// Handshake is the timeout of the TLS handshake. While other clients wait for theirs it is a
	// fifth of that. A value that is not positive means the default.
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

// minHandshakes is the least number of handshakes that may run at once, handshakesPerLoop the
// number per event loop.
const (
	minHandshakes     = 64
	handshakesPerLoop = 8
)

// MaxHandshakes returns the maximum number of handshakes that run at once. With event loops each of
// them uses a second descriptor.
func MaxHandshakes(loops int) int { return max(minHandshakes, handshakesPerLoop*loops) }

package transport

import "time"

// Limits bound what a transport holds for one connection, and for how long. A size that is
// not positive stands for its default.
type Limits struct {
	// Backlog is how many bytes may wait to be sent before input is no longer read,
	// and how many unread bytes are kept for a parked session.
	Backlog int
	// WriteTimeout closes a connection whose peer has taken no byte for so long; it
	// may take an eighth longer. 0 waits for ever.
	WriteTimeout time.Duration
	// MaxInput is the most unconsumed input a connection may pile up; a session
	// that leaves so much and asks for more is closed.
	MaxInput int
	// Chunk is the most that is read from a socket before its session is fed.
	Chunk int
	// KeepAlive is the TCP keep-alive period; 0 turns it off.
	KeepAlive time.Duration
	// Linger is how long a connection that its session or a refusal has ended is kept for
	// its peer to read the last bytes. Not positive stands for the default.
	Linger time.Duration
	// Handshake is how long a client may take over the TLS handshake. While others wait to
	// begin theirs it is a fifth of that. Not positive stands for the default.
	Handshake time.Duration
}

// DefaultLimits returns the limits a server starts with.
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

// At least minHandshakes are under way before others wait, and handshakesPerLoop for each loop.
const (
	minHandshakes     = 64
	handshakesPerLoop = 8
)

// MaxHandshakes is how many handshakes are under way at once. With event loops each of them
// has a second descriptor.
func MaxHandshakes(loops int) int { return max(minHandshakes, handshakesPerLoop*loops) }

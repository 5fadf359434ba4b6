package transport

import (
	"net"
	"sync/atomic"
)

// measured is a connection below TLS that knows how large the buffer is that TLS reads
// into, since the whole rest of that is offered to each Read.
type measured struct {
	net.Conn
	room atomic.Int64
}

// Read implements [net.Conn].
func (m *measured) Read(p []byte) (int, error) {
	if n := int64(len(p)); n > m.room.Load() {
		m.room.Store(n)
	}
	return m.Conn.Read(p)
}

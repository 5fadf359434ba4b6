package buffer

import (
	"net"
	"sync/atomic"
)

// MeasuredConn is a connection below TLS that knows how large the buffer is that TLS reads
// into, since the whole rest of that is offered to each Read.
type MeasuredConn struct {
	net.Conn
	Room atomic.Int64
}

// Read implements [net.Conn].
func (m *MeasuredConn) Read(p []byte) (int, error) {
	if n := int64(len(p)); n > m.Room.Load() {
		m.Room.Store(n)
	}
	return m.Conn.Read(p)
}

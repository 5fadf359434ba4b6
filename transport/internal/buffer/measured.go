package buffer

import (
	"net"
	"sync/atomic"
)

// MeasuredConn is a connection below TLS. It records the size of the buffer that crypto/tls reads
// into, because each Read gets all free space of that buffer.
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

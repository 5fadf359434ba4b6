package buffer

import (
	"net"
	"sync/atomic"
)

// MeasuredConn is a connection below TLS. It records the size of the buffer into which crypto/tls
// reads: the length of the slices that Read gets, because crypto/tls passes all free space of the
// buffer.
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

package replication

import "sync"

// durability tells which offset of the stream is durable when a position of the log is. It
// remembers one pair at a time, and the next once that is durable: an offset is reported up
// to two fsyncs late, never early.
type durability struct {
	mu       sync.Mutex // guards what follows
	last     uint64     // the latest position of the log
	position uint64     // the pair that is waited for; 0 while there is none
	offset   uint64
	safe     uint64 // the offset that is durable
	known    bool   // safe is one
}

// forget begins again, since offsets are those of another history now.
func (m *durability) forget() {
	m.mu.Lock()
	m.last, m.position, m.known = 0, 0, false
	m.mu.Unlock()
}

// appended notes that the log has got to position.
func (m *durability) appended(position uint64) {
	m.mu.Lock()
	m.last = position
	m.mu.Unlock()
}

// durable returns what is known to be durable of the stream, given up to where the log is
// and that all before offset was appended.
func (m *durability) durable(synced, offset uint64) (safe uint64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.position != 0 && synced >= m.position {
		m.safe, m.known, m.position = m.offset, true, 0
	}
	if m.position == 0 && m.last != 0 {
		m.position, m.offset = m.last, offset
	}
	return m.safe, m.known
}

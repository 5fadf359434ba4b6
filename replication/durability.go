package replication

import "sync"

// durability tells which offset of the stream is durable when a position of the log is durable.
// It remembers one pair of position and offset at a time, and takes the next once that pair is
// durable. So it reports an offset up to two fsyncs late, but never early.
type durability struct {
	mu       sync.Mutex // guards the fields below
	last     uint64     // the latest position of the log
	position uint64     // of the pair that is not durable yet; 0 if there is none
	offset   uint64
	safe     uint64 // the offset up to which the stream is durable
	known    bool   // safe has been set
}

// forget discards everything, because offsets belong to another history from now on.
func (d *durability) forget() {
	d.mu.Lock()
	d.last, d.position, d.known = 0, 0, false
	d.mu.Unlock()
}

// appended records that the log has reached position.
func (d *durability) appended(position uint64) {
	d.mu.Lock()
	d.last = position
	d.mu.Unlock()
}

// durable returns the offset up to which the stream is known to be durable. synced is the durable
// position of the log. Everything before offset must have been appended to the log.
func (d *durability) durable(synced, offset uint64) (safe uint64, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.position != 0 && synced >= d.position {
		d.safe, d.known, d.position = d.offset, true, 0
	}
	if d.position == 0 && d.last != 0 {
		d.position, d.offset = d.last, offset
	}
	return d.safe, d.known
}

package replication

import "sync"

// durability finds the offset of the stream before which everything is durable, given the position
// up to which the log is durable. It remembers one pair of a log position and a stream offset. When
// the log is durable up to that position, durability reports the offset and takes the next pair. So
// the reported offset may be up to two fsyncs old, but it is never too large. Any goroutine may use
// a durability.
type durability struct {
	mu       sync.Mutex // mu guards the fields below
	last     uint64     // the latest position of the log that has arrived here
	position uint64     // the position of the present pair, which is not durable yet; 0 if there is no pair
	offset   uint64
	safe     uint64 // offset before which the stream is durable; valid if known is true
	known    bool   // whether safe was ever set
}

// forget discards all positions and offsets, because the stream continues with another history.
func (d *durability) forget() {
	d.mu.Lock()
	d.last, d.position, d.known = 0, 0, false
	d.mu.Unlock()
}

// appended records that the log has been appended to up to position.
func (d *durability) appended(position uint64) {
	d.mu.Lock()
	d.last = position
	d.mu.Unlock()
}

// durable returns safe, the offset before which the stream is known to be durable. known is false
// while no such offset is known; then safe is not valid. synced is the position up to which the log
// is durable. offset is the present end of the stream; everything before offset must have been
// appended to the log.
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

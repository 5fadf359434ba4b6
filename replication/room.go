package replication

// A backlog is larger than repl-backlog-size while it has a frame that is longer than half of
// that. Otherwise the frame would overtake replicas that have read everything before it, and
// the full sync that they need then would end when the next such frame comes.

// mostRoom bounds what a backlog takes because of a long frame: 512 MiB. A frame that is longer
// overtakes replicas. Redis, too, gives up replicas that are 256 MiB behind.
const mostRoom = 512 << 20

// roomFor is how large a backlog of a size has to be for a frame that is to be written: twice as
// large as that.
func roomFor(size int64, frame int) int64 {
	if frame > mostRoom {
		return size
	}
	return max(size, min(2*int64(frame), mostRoom))
}

// roomAfter is how large a backlog of a size has to be still, of which the slowest replica lacks
// so many bytes. Configured is the size without long frames.
func roomAfter(size, configured int64, lacks uint64) int64 {
	return max(configured, min(size, configured+int64(lacks)))
}

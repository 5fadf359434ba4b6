package replication

// A backlog grows beyond repl-backlog-size while it has a frame that is longer than half of that
// size. Otherwise the frame would overtake replicas that have read everything before it. They
// would need a full resynchronization, which would fail when the next such frame arrives.

// maxFrameRoom is the maximum size of a backlog that has grown for a long frame: 512 MiB. A
// longer frame overtakes replicas. Redis, too, disconnects replicas that are 256 MiB behind.
const maxFrameRoom = 512 << 20

// sizeForFrame returns the size that a backlog with the given size needs before a frame of frame
// bytes is written to it: at least twice the length of the frame, but no more than maxFrameRoom.
// For a longer frame the backlog keeps its size.
func sizeForFrame(size int64, frame int) int64 {
	if frame > maxFrameRoom {
		return size
	}
	return max(size, min(2*int64(frame), maxFrameRoom))
}

// sizeAfterFrame returns the size that a grown backlog still needs while its slowest replica has
// not read the latest lacks bytes. size is the present size, and configured the size without long
// frames.
func sizeAfterFrame(size, configured int64, lacks uint64) int64 {
	return max(configured, min(size, configured+int64(lacks)))
}

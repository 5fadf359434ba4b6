package transport

// Work returns the work that each loop of e has done.
func Work(e *Epoll) []int64 {
	var work []int64
	for _, l := range e.loops {
		work = append(work, l.told.work.Load())
	}
	return work
}

// Moved returns how many connections have been handed from one loop to another.
func Moved(e *Epoll) int64 {
	moved := int64(0)
	for _, l := range e.loops {
		moved += l.told.moved.Load()
	}
	return moved
}

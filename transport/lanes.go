package transport

import "sync"

// lanes lends a handler's lanes, last returned first, so that few are ever made:
// as many as there were Feeds under way at one moment. They are never dropped,
// because a lane may carry counters.
type lanes struct {
	mu   sync.Mutex
	idle []Lane
}

func (l *lanes) borrow(h Handler) Lane {
	l.mu.Lock()
	if n := len(l.idle); n > 0 {
		lane := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.mu.Unlock()
		return lane
	}
	l.mu.Unlock()
	return h.NewLane()
}

func (l *lanes) giveBack(lane Lane) {
	l.mu.Lock()
	l.idle = append(l.idle, lane)
	l.mu.Unlock()
}

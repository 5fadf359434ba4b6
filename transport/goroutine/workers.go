package goroutine

import (
	"sync"

	"github.com/cellserver/cellserver/transport"
)

// workers lends a handler's workers, last returned first, so that few are ever made:
// as many as there were Feeds under way at one moment. They are never dropped,
// because a worker may carry counters.
type workers struct {
	mu   sync.Mutex
	idle []transport.Worker
}

func (l *workers) borrow(h transport.Handler) transport.Worker {
	l.mu.Lock()
	if n := len(l.idle); n > 0 {
		worker := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.mu.Unlock()
		return worker
	}
	l.mu.Unlock()
	return h.NewWorker()
}

func (l *workers) giveBack(worker transport.Worker) {
	l.mu.Lock()
	l.idle = append(l.idle, worker)
	l.mu.Unlock()
}

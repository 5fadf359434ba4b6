package goroutine

import (
	"sync"

	"github.com/cellserver/cellserver/transport"
)

// workers is a pool of a handler's workers. It lends the worker that was returned last, so there
// are only as many workers as Feeds have ever run at the same time. It never drops a worker,
// because a worker may contain counters.
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

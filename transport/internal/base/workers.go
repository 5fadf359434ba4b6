package base

import (
	"sync"

	"github.com/cellserver/cellserver/transport"
)

// Workers is a pool of a handler's workers. It lends the worker that was returned last, so there
// are only as many workers as Feeds have ever run at the same time. It never drops a worker,
// because a worker may contain counters. The zero value is ready to use, by any goroutine.
type Workers struct {
	mu   sync.Mutex
	idle []transport.Worker
}

// Borrow returns a worker of h for one Feed. The caller gives it back by [Workers.GiveBack].
func (l *Workers) Borrow(h transport.Handler) transport.Worker {
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

// GiveBack returns a worker to the pool.
func (l *Workers) GiveBack(worker transport.Worker) {
	l.mu.Lock()
	l.idle = append(l.idle, worker)
	l.mu.Unlock()
}

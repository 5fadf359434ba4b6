package engine

import (
	"runtime"
	"sync"
)

const (
	// mostAtOnce and mostBytes bound a pipeline.
	mostAtOnce = 768
	mostBytes  = 1 << 20
	// mostWaiting bounds what waits for a node.
	mostWaiting = 1 << 16
	// fewest is how many requests wake a worker while another is about to come back for
	// them: a pipeline of one costs a node and us many times what a place in one does.
	fewest = 64
)

// queue is what waits for the workers of a node.
type queue struct {
	mu      sync.Mutex
	wake    sync.Cond
	pending []*request
	most    int // how many may wait; 0 is no bound
	busy    int // workers that hand out answers, and take what is here right after
	closed  bool
}

func newQueue(most int) *queue {
	q := &queue{most: most}
	q.wake.L = &q.mu
	return q
}

// put appends a request. It reports whether there was room, and whether the queue is open.
func (q *queue) put(r *request) (room, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return true, false
	}
	if q.most > 0 && len(q.pending) >= q.most {
		return false, true
	}
	q.pending = append(q.pending, r)
	if q.busy == 0 || len(q.pending) >= fewest {
		q.wake.Signal()
	}
	return true, true
}

// take waits for requests and moves as many to into as one pipeline has; none once the
// queue is closed and empty.
func (q *queue) take(into []*request) []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	for yielded := false; ; {
		if len(q.pending) == 0 {
			if q.closed {
				return into
			}
			q.wake.Wait()
			continue
		}
		if yielded || len(q.pending) >= fewest {
			break
		}
		yielded = true // whoever submits them may be in the middle of it
		q.mu.Unlock()
		runtime.Gosched()
		q.mu.Lock()
	}
	n, size := 0, 0
	for n < len(q.pending) && n < mostAtOnce && size < mostBytes {
		size += q.pending[n].size
		n++
	}
	into = append(into, q.pending[:n]...)
	left := copy(q.pending, q.pending[n:])
	clear(q.pending[left:])
	q.pending = q.pending[:left]
	if left > 0 {
		q.wake.Signal()
	}
	return into
}

// begin says that a worker hands out answers, end that it comes back.
func (q *queue) begin() {
	q.mu.Lock()
	q.busy++
	q.mu.Unlock()
}

func (q *queue) end() {
	q.mu.Lock()
	q.busy--
	q.mu.Unlock()
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.pending)
}

// close ends the queue. What waits is still taken.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wake.Broadcast()
}

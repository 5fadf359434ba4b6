package engine

import (
	"runtime"
	"sync"
)

const (
	// mostAtOnce and mostBytes bound a pipeline.
	mostAtOnce = 768
	mostBytes  = 1 << 20
	// mostWaiting bounds the number of requests that wait for a node.
	mostWaiting = 1 << 16
	// fewest is the number of requests that wake a worker while another is about to come back for
	// them: a pipeline of one costs the node and the server many times as much as a place in a
	// pipeline.
	fewest = 64
)

// queue has the requests that wait for the workers of a node.
type queue struct {
	mu      sync.Mutex
	wake    sync.Cond
	pending []*request
	most    int // maximum number of waiting requests; 0 means no bound
	busy    int // workers that hand out answers, and come back for requests right after
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

// take waits for requests and appends as many to into as fit into one pipeline; none once the queue
// is closed and empty.
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
		yielded = true // the goroutine that submits requests may be about to submit more
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

// begin says that a worker begins to hand out answers, and end that it comes back.
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

// close ends the queue. Waiting requests can still be taken.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wake.Broadcast()
}

package engine

import (
	"runtime"
	"sync"
)

const (
	// mostAtOnce and mostBytes are the maximum number of requests, and their approximate maximum
	// size in bytes, in one pipeline.
	mostAtOnce = 768
	mostBytes  = 1 << 20
	// mostWaiting is the maximum number of requests that wait for a node.
	mostWaiting = 1 << 16
	// fewest is the number of waiting requests that wakes a worker although another worker is
	// about to come back for them. A pipeline with one request costs the node and the server many
	// times as much as a place in a longer pipeline.
	fewest = 64
)

// queue has the requests that wait for the workers of a node. Any goroutine may use it.
type queue struct {
	mu      sync.Mutex
	wake    sync.Cond
	pending []*request
	most    int // maximum number of waiting requests; 0 means no limit
	busy    int // number of workers that hand out answers and then come back for requests
	closed  bool
}

func newQueue(most int) *queue {
	q := &queue{most: most}
	q.wake.L = &q.mu
	return q
}

// put appends the request r. room is false if the queue is full, and open is false if it is
// closed. In both cases r was not appended.
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

// take waits for requests, appends as many of them to into as fit into one pipeline, and returns
// the result. It appends none if the queue is closed and empty.
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
		yielded = true // the goroutine that submits requests may submit more now
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

// begin records that a worker begins to hand out answers.
func (q *queue) begin() {
	q.mu.Lock()
	q.busy++
	q.mu.Unlock()
}

// end records that a worker has handed out answers and comes back for requests.
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

// close closes the queue. Waiting requests can still be taken.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wake.Broadcast()
}

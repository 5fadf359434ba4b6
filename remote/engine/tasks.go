package engine

import "sync"

const (
	// taskWorkers is the number of operations on all keys that run at once, and mostTasks the
	// maximum number that wait.
	taskWorkers = 4
	mostTasks   = 1 << 10
)

// tasks runs functions that block, in the order of their arrival, on taskWorkers goroutines.
type tasks struct {
	mu      sync.Mutex
	wake    sync.Cond
	waiting []func()
	closed  bool
	done    sync.WaitGroup
}

// newTasks returns an empty queue, and starts the goroutines.
func newTasks() *tasks {
	t := &tasks{}
	t.wake.L = &t.mu
	for range taskWorkers {
		t.done.Go(t.work)
	}
	return t
}

// add puts f into the queue. It returns false if the queue is full or closed.
func (t *tasks) add(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.waiting) >= mostTasks {
		return false
	}
	t.waiting = append(t.waiting, f)
	t.wake.Signal()
	return true
}

// work runs waiting functions until the queue is closed and empty.
func (t *tasks) work() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		for len(t.waiting) == 0 {
			if t.closed {
				return
			}
			t.wake.Wait()
		}
		f := t.waiting[0]
		t.waiting = t.waiting[1:]
		t.mu.Unlock()
		f()
		t.mu.Lock()
	}
}

// close closes the queue, and waits until all functions have returned.
func (t *tasks) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.wake.Broadcast()
	t.done.Wait()
}

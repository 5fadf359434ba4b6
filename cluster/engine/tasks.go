package engine

import "sync"

const (
	// taskWorkers and mostTasks bound the work beside requests: operations on all keys.
	taskWorkers = 4
	mostTasks   = 1 << 10
)

// tasks runs functions that block, in order on a few goroutines.
type tasks struct {
	mu      sync.Mutex
	wake    sync.Cond
	waiting []func()
	closed  bool
	done    sync.WaitGroup
}

func newTasks() *tasks {
	t := &tasks{}
	t.wake.L = &t.mu
	for range taskWorkers {
		t.done.Go(t.work)
	}
	return t
}

// add enqueues f. It reports whether there was room.
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

// close ends the goroutines once all functions have returned.
func (t *tasks) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.wake.Broadcast()
	t.done.Wait()
}

package lua

import "sync"

// maxIdle is how many states a pool keeps: as many as can run at once on a large
// machine, 4 MB of them.
const maxIdle = 64

// idleRuns is a stack of runs, so that the warmest is used first. mu guards it.
type idleRuns struct {
	mu   sync.Mutex
	runs []*Run
}

func (i *idleRuns) pop() *Run {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := len(i.runs)
	if n == 0 {
		return nil
	}
	r := i.runs[n-1]
	i.runs[n-1] = nil
	i.runs = i.runs[:n-1]
	return r
}

func (i *idleRuns) push(r *Run) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.runs) >= maxIdle {
		return false
	}
	i.runs = append(i.runs, r)
	return true
}

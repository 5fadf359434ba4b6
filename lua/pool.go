package lua

import (
	"sync"

	"github.com/cellserver/cellserver/lua/sandbox"
)

// Pool keeps states for executions, because making one takes 30 µs and 60 KB. Any number of
// goroutines may use it.
type Pool struct {
	memory *sandbox.Memory
	idle   idleRuns
}

// NewPool returns a pool whose runs have these limits.
func NewPool(limits Limits) *Pool {
	return &Pool{memory: sandbox.NewMemory(limits)}
}

// Get returns a clean run that is not killed. It belongs to the caller until Put.
func (p *Pool) Get() *Run {
	if r := p.idle.pop(); r != nil {
		return r
	}
	return newRun(p.memory)
}

// Put returns a run that is not executing. A run that was killed, overflowed, panicked or took much
// memory is closed instead of kept.
func (p *Pool) Put(r *Run) {
	if !r.reusable() || !p.idle.push(r) {
		r.close()
	}
}

// maxIdle is the maximum number of idle states in a pool: as many as can run at once on a large
// machine, 4 MB of them.
const maxIdle = 64

// idleRuns is a stack of runs, so that the most recently used is used first. mu guards it.
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

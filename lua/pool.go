package lua

import (
	"sync"

	"github.com/cellserver/cellserver/lua/sandbox"
)

// Pool keeps idle runs for later executions, because making a run takes 30 µs and 60 KB. Any number
// of goroutines may use a Pool.
type Pool struct {
	memory *sandbox.Memory
	idle   idleRuns
}

// NewPool returns a pool whose runs have the given limits. The runs of one pool share the count of
// garbage in the heap.
func NewPool(limits Limits) *Pool {
	return &Pool{memory: sandbox.NewMemory(limits)}
}

// Get returns an idle run or a new one, in which no script has been killed. The run belongs to the
// caller until Put.
func (p *Pool) Get() *Run {
	if r := p.idle.pop(); r != nil {
		return r
	}
	return newRun(p.memory)
}

// Put gives r, which must not be executing, back to the pool. Put closes r instead of keeping it if
// a script in it was killed, overflowed the stack, panicked or took much memory, or if the pool has
// enough idle runs.
func (p *Pool) Put(r *Run) {
	if !r.reusable() || !p.idle.push(r) {
		r.close()
	}
}

// maxIdle is the maximum number of idle runs in a pool. It is as many as can run at once on a large
// machine; they take 4 MB.
const maxIdle = 64

// idleRuns is a stack of idle runs: the most recently used run is used first. mu guards runs.
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

package remotedouble

import (
	"context"
	"sync"
	"time"

	"github.com/cellserver/cellserver/remote/engine"
)

// Replicas are the replicas of an engine in memory, for changes of policies. The zero Replicas has none. Any goroutine may
// call its methods.
type Replicas struct {
	mu     sync.Mutex
	all    int  // number of replicas; guarded by mu
	silent bool // whether the replicas confirm nothing; guarded by mu
	err    error
	asked  int // number of calls of Confirm so far; guarded by mu
}

// Set sets the number of replicas, and whether they do not confirm writes.
func (r *Replicas) Set(all int, silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all, r.silent = all, silent
}

// Fail makes requests for replicas fail with err. A nil err ends this.
func (r *Replicas) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// Asked returns the number of requests for replicas.
func (r *Replicas) Asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// Confirm returns the result of an engine whose script has replied reply. It takes the time d if no replica confirms.
func (r *Replicas) Confirm(ctx context.Context, reply any, d time.Duration) (engine.Confirmed, error) {
	r.mu.Lock()
	r.asked++
	is, silent, err := engine.Confirmed{Reply: reply, Replicas: r.all}, r.silent, r.err
	r.mu.Unlock()
	switch {
	case err != nil:
		return engine.Confirmed{}, err
	case is.Replicas > 0 && !silent:
		is.Have = 1
	case is.Replicas > 0:
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	return is, nil
}

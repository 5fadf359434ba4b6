package report

// step has the counts of one step of a ring.
type step struct {
	allowed, denied, failed uint32
	p50, p99                float32 // percentiles of the durations of commands, in microseconds
}

// ring keeps the newest steps. A step's number is the time in steps. A step without a sample is
// empty.
type ring[T any] struct {
	steps []T
	next  int64 // number of the step that comes next
	first int64 // number of the oldest step that is kept
}

func newRing[T any](size int) *ring[T] { return &ring[T]{steps: make([]T, size)} }

// at returns the step with the number n, and adds it and the steps before it if they are new. If n
// is lower than the number of the newest step, it returns the newest step, since time does not go
// back.
func (r *ring[T]) at(n int64) *T {
	size := int64(len(r.steps))
	if r.next == 0 {
		r.first, r.next = n, n
	}
	if n >= r.next+size {
		r.next = n - size + 1
	}
	for r.next <= n {
		var none T
		r.steps[r.next%size] = none
		r.next++
	}
	r.first = max(r.first, r.next-size)
	return &r.steps[(r.next-1)%size]
}

// get returns the step with the number n, and whether the ring keeps it.
func (r *ring[T]) get(n int64) (*T, bool) {
	if n < r.first || n >= r.next {
		return nil, false
	}
	return &r.steps[n%int64(len(r.steps))], true
}

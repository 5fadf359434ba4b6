package report

// step is what happened in one step of a ring.
type step struct {
	allowed, denied, failed uint32
	p50, p99                float32 // microseconds
}

// ring keeps the newest steps, numbered by the time from the start in steps. A step that was
// left out is empty.
type ring[T any] struct {
	steps []T
	next  int64 // number of the first step that is to come
	first int64 // number of the oldest step that is kept
}

func newRing[T any](size int) *ring[T] { return &ring[T]{steps: make([]T, size)} }

// at returns the step of that number, which is the newest or becomes it. One that is too old
// is the newest, too: time does not go back.
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

// get returns a step that is kept.
func (r *ring[T]) get(n int64) (*T, bool) {
	if n < r.first || n >= r.next {
		return nil, false
	}
	return &r.steps[n%int64(len(r.steps))], true
}

package replication

import (
	"time"

	"github.com/cellserver/cellserver/transport"
)

// waiter is a peer that waits until enough replicas have applied everything before offset.
type waiter struct {
	offset uint64
	since  time.Duration // stopwatch reading at which the waiter was registered
	p      transport.Peer
}

// waitHeap has the waiters for the same number of replicas, as a binary heap. The first waiter
// has the smallest offset. Offsets arrive nearly in the order of the stream, for which push takes
// constant time. An acknowledgement examines only the waiters that it wakes, and one more.
type waitHeap []waiter

// push adds w and returns the new heap.
func (h waitHeap) push(w waiter) waitHeap {
	h = append(h, w)
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if h[parent].offset <= h[i].offset {
			break
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
	return h
}

// pop removes the first waiter and returns the new heap.
func (h waitHeap) pop() waitHeap {
	last := len(h) - 1
	h[0], h[last] = h[last], waiter{}
	h = h[:last]
	h.sink(0)
	return h
}

// sink moves the element at index i down to its place in the heap. The elements below i must be
// in order.
func (h waitHeap) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].offset < h[least].offset {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// order restores the order of the heap from elements in any order.
func (h waitHeap) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}
